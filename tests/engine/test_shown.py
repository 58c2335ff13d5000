"""Pictures as a network takes them: enlarged as by PIL, normalised, and measured."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cose_toys import pictures
from saliometer.engine.data import data_given
from saliometer.engine.shown import Shown, placed
from saliometer.images import Preprocessing

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.5)
CPU = torch.device("cpu")


def shown(levels: torch.Tensor, labels: torch.Tensor, way: Preprocessing | None = None) -> Shown:
    way = way or Preprocessing(levels.shape[-1], levels.shape[-1], MEAN, STD)
    return Shown.on(CPU, levels, labels, way, torch.contiguous_format)


@pytest.mark.parametrize(
    ("side", "resize", "crop"), [(32, 64, 64), (32, 73, 64), (28, 32, 32), (64, 40, 32), (64, 256, 224)]
)
def test_pixels_are_pils_to_a_level(side, resize, crop):
    levels = pictures(2, 3, side, side)
    found = placed(levels, resize, crop)
    assert found.shape == (2, 3, crop, crop)
    for image, wanted in zip(found, levels, strict=True):
        picture = Image.fromarray(np.ascontiguousarray(wanted.permute(1, 2, 0).numpy()))
        apart = (image.int() - Preprocessing(resize, crop).levels(picture).int()).abs()
        assert apart.max() <= 1


def test_pictures_of_the_right_size_stay():
    levels = pictures(1, 3, 16, 16)
    assert placed(levels, 20, 16) is levels


def test_inputs_are_normalised():
    levels = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    inputs = shown(levels, torch.tensor([0])).inputs(levels)
    wanted = torch.tensor([(0 - 0.4) / 0.2, (0.2 - 0.5) / 0.25, (1 - 0.6) / 0.5])
    torch.testing.assert_close(inputs[0, :, 3, 5], wanted)


def test_an_epoch_is_the_same_for_every_size_of_batch_and_holds_the_right_labels():
    levels, labels = pictures(30, 3, 16, 16), torch.arange(30)
    part = shown(levels, labels)

    def epoch(size: int) -> dict[int, torch.Tensor]:
        batches = list(part.batches(2, size, seed=5, jitter=True))
        assert all(len(images) <= size for _, images in batches)
        return {int(n): image for chosen, images in batches for n, image in zip(chosen, images, strict=True)}

    few, many = epoch(4), epoch(30)
    assert set(few) == set(many) == set(range(30))
    assert all(torch.equal(few[n], many[n]) for n in many)
    assert not torch.equal(torch.stack(list(many.values())), part.inputs(levels))


def test_the_measured_loss_and_accuracy_are_those_of_the_pictures_as_they_are():
    """Class 1 is white; the logit of white is 1, of black 0, against a constant 0.5."""
    levels = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    levels[2:] = 255
    labels = torch.tensor([0, 1, 1, 1])

    class Brightness(nn.Module):
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            assert not self.training
            bright = images.mean((1, 2, 3))
            return torch.stack((torch.full_like(bright, 0.5), bright), 1)

    part = Shown.on(CPU, levels, labels, Preprocessing(8, 8, (0.0,) * 3, (1.0,) * 3), torch.contiguous_format)
    loss, accuracy = part.measured(Brightness())
    assert accuracy == 0.75
    logits = torch.tensor([[0.5, 0], [0.5, 0], [0.5, 1], [0.5, 1]])
    assert loss == pytest.approx(nn.functional.cross_entropy(logits, labels).item(), rel=1e-6)


def test_every_so_manieth_picture_can_be_looked_at_alone():
    part = shown(pictures(10, 3, 8, 8), torch.arange(10)).every(4)
    assert part.labels.tolist() == [0, 4, 8]
    assert len(part.at(slice(0, 9))) == 3


# What is trained on


def test_a_textbox_setting_is_data_of_8_bits():
    data = data_given("textbox:complex-fr(train=24,test=12)")
    assert (data.name, data.classes, data.side) == ("complex-fr", ("0", "1"), 64)
    assert (len(data.train), len(data.test)) == (24, 12)
    assert data.test_labels.sum() == 3  # three of twelve buckets have both boxes
    assert data.train.max() == 255
    assert data_given("textbox:complex-fr(train=24,test=12)").sha256 == data.sha256
    assert data_given("textbox:complex-fr(train=24,test=12)", seed=1).sha256 != data.sha256
    assert data_given("textbox:complex-fr(train=24,test=12,background=noise)").train.float().mean() > 40


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("textbox:complex", LookupError, "there is no TextBox setting 'complex'. There are: simple-fr"),
        (
            "textbox:simple-fr(images=3)",
            LookupError,
            "there is no parameter 'images'. There are: train, test, background",
        ),
        ("textbox:simple-fr(train=1)", ValueError, "train=1, wanted a whole number of 2 or more"),
    ],
)
def test_a_setting_that_is_not_there(text, error, words):
    with pytest.raises(error, match=words):
        data_given(text)


def test_a_setting_takes_no_other_test_images():
    with pytest.raises(ValueError, match="has test images of its own"):
        data_given("textbox:simple-fr", test="folder")
