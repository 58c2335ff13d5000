"""The images of an audit: chunks, seeds, masks, references, transforms and marks, from tensors, loaders and files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from audit_toys import noise
from saliometer.engine.source import of_batches, of_pictures, of_tensors
from saliometer.images import Preprocessing, read_images
from saliometer.types import PRIMARY
from toys import CPU, model_of, small_cnn

LABELS = torch.tensor([2, 0, 1, 0, 2])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five pictures with masks of their left half, one of them half unlabelled."""
    rng = np.random.default_rng(0)
    for place in ("images", "masks"):
        (tmp_path / place).mkdir()
    for i in range(5):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / "images" / f"{i}.png")
        mask = np.zeros((8, 8), np.uint8)
        mask[:, :4] = 255
        mask[:, 6:] = 128 * (i == 0)
        Image.fromarray(mask).save(tmp_path / "masks" / f"{i}.png")
    return tmp_path


def from_files(folder: Path, **given):
    pictures = read_images(folder / "images", **given)
    return of_pictures(pictures, Preprocessing(8, 8, (0.5,) * 3, (0.25,) * 3), "pets")


def test_a_chunk_holds_its_images_labels_ids_and_buckets():
    samples = of_tensors(noise(), LABELS).samples(1, 4, 0, CPU)
    assert torch.equal(samples.batch.images, noise()[1:4])
    assert samples.labels.tolist() == samples.batch.targets.tolist() == [0, 1, 0]
    assert samples.ids == ("image-1", "image-2", "image-3")
    assert samples.buckets == ("0", "1", "0")
    assert samples.objects.shape == (3, 0, 8, 8)


def test_without_labels_buckets_are_empty():
    samples = of_tensors(noise()).samples(0, 5, 0, CPU)
    assert samples.buckets == ("",) * 5
    assert samples.labels.tolist() == [-1] * 5


def test_an_images_seed_depends_on_its_place_and_the_runs_seed_alone():
    source = of_tensors(noise())
    whole = source.samples(0, 5, 0, CPU).batch.seeds
    assert torch.equal(whole[2:4], source.samples(2, 4, 0, CPU).batch.seeds)
    assert len(whole.unique()) == 5
    assert not (whole == source.samples(0, 5, 1, CPU).batch.seeds).any()


def test_pictures_are_normalised_as_the_model_takes_them(folder):
    source = from_files(folder)
    pixels = np.asarray(Image.open(folder / "images" / "3.png"), np.float32) / 255
    wanted = torch.from_numpy((pixels - 0.5) / 0.25).permute(2, 0, 1)
    torch.testing.assert_close(source.images(3, 4)[0], wanted, rtol=1e-5, atol=1e-5)
    assert source.ids == tuple(f"{i}.png" for i in range(5))


def test_masks_of_pictures_are_objects_and_what_nobody_labelled(folder):
    samples = from_files(folder, masks=folder / "masks").samples(0, 2, 0, CPU)
    assert samples.objects.shape == (2, 1, 8, 8)
    assert (samples.roles == PRIMARY).all()
    assert samples.objects[:, 0, :, :4].all()
    assert not samples.objects[:, 0, :, 4:].any()
    assert samples.unlabelled[0, :, 6:].all()
    assert samples.unlabelled.sum() == 16


def test_marks_follow_images_labels_and_masks(folder):
    marks = [
        of_tensors(noise()), of_tensors(noise() + 1), of_tensors(noise().view(5, 3, 4, 16)),
        of_tensors(noise(), LABELS), of_tensors(noise(), LABELS.roll(1)),
        of_tensors(noise(), masks=torch.ones(5, 8, 8)),
        of_tensors(noise(), masks=torch.zeros(5, 8, 8)), from_files(folder), from_files(folder, masks=folder / "masks"),
    ]  # fmt: skip
    seen = {(source.fingerprint, *source.truth_mark.values()) for source in marks}
    assert len(seen) == len(marks)
    assert of_tensors(noise(), LABELS).truth_mark["labels"]
    assert of_tensors(noise()).truth_mark == {"labels": "", "masks": ""}
    mask = folder / "masks" / "4.png"
    before = from_files(folder, masks=folder / "masks").truth_mark
    Image.fromarray(np.full((8, 8), 255, np.uint8)).save(mask)
    assert from_files(folder, masks=folder / "masks").truth_mark != before


def test_references_are_images_of_the_set_and_the_same_for_a_seed():
    source = of_tensors(noise())
    found = source.references(3, 0, CPU)
    assert len(found) == 3
    assert all(any(torch.equal(one, image) for image in noise()) for one in found)
    assert torch.equal(found, source.references(3, 0, CPU))
    assert len(source.references(1000, 0, CPU)) == 5


def test_a_transform_works_on_pixels_and_names_itself():
    model = model_of(small_cnn(), mean=(0.5,), std=(0.25,))
    source = of_tensors((noise() - 0.5) / 0.25, LABELS)
    turned = source.under("rotation(degrees=180)", 0, model)
    torch.testing.assert_close(turned.images(0, 5), source.images(0, 5).flip(2, 3), rtol=1e-4, atol=1e-4)
    assert turned.condition == "rotation(degrees=180)"
    assert turned.fingerprint != source.fingerprint
    assert turned.ids == source.ids


def test_the_second_class_of_a_blend_is_that_of_the_picture_blended_in():
    model, images = model_of(small_cnn()), noise()
    source = of_tensors(images, LABELS)
    blend = source.under("mixup(weight=0.6)", 0, model)
    other = blend.second()
    assert not (other.labels == LABELS).any()
    assert torch.equal(other.tensors, blend.tensors)
    assert (other.condition, other.fingerprint) == ("mixup_second(weight=0.6)", blend.fingerprint)
    assert torch.equal(other.second().labels, LABELS)
    pixels = [model.pixels(one).clamp(0, 1) for one in (images, blend.tensors)]
    rests = (pixels[1] - 0.6 * pixels[0]) / 0.4  # what was blended in
    found = [min(range(5), key=lambda i: float((pixels[0][i] - rest).abs().max())) for rest in rests]
    assert torch.equal(LABELS[found], other.labels)
    some = blend.some(2, 0)
    assert some.blended.tolist() == [other.labels[blend.ids.index(name)] for name in some.ids]
    assert source.under("crop(area=0.5)", 0, model).blended is None


@pytest.mark.parametrize("files", [False, True])
def test_some_of_the_images_are_a_source_of_their_own(folder, files):
    source = from_files(folder, masks=folder / "masks") if files else of_tensors(noise(), LABELS, torch.ones(5, 8, 8))
    few, more = source.some(2, 0), source.some(4, 0)
    assert (len(few), len(more)) == (2, 4)
    assert set(few.ids) < set(more.ids) < set(source.ids)
    places = [source.ids.index(one) for one in few.ids]
    assert torch.equal(few.images(0, 2), source.images(0, 5)[places])
    assert torch.equal(few.truth(0, 2)[0], source.truth(0, 5)[0][places])
    assert files or few.labels.tolist() == LABELS[places].tolist()
    assert len({one.fingerprint for one in (few, more, source, source.some(2, 1))}) == 4
    assert source.some(5, 0) is source.some(0, 0) is source


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        ([], "the DataLoader gave no images"),
        ([(noise(), LABELS), (noise(),)], "some batches of the DataLoader hold labels and some do not"),
        ([["a.png"]], "the DataLoader gave a batch of str: wanted a tensor of images"),
        ([(noise(), LABELS.float())], "wanted 5 whole numbers of 0 or more"),
    ],
)
def test_loaders_that_give_something_else_are_refused_in_words(batches, message):
    with pytest.raises(ValueError, match=message):
        of_batches(batches)


def test_a_loader_is_read_no_further_than_the_limit():
    def endless():
        while True:
            yield noise(2), LABELS[:2]

    source = of_batches(endless(), limit=3)
    assert len(source) == 3
    assert source.labels.tolist() == [2, 0, 2]


def test_an_images_seed_is_its_own_whatever_stands_beside_it(folder):
    whole = from_files(folder).samples(0, 5, 0, CPU)
    (folder / "images" / "0.png").unlink()
    rest = from_files(folder).samples(0, 4, 0, CPU)
    assert torch.equal(rest.batch.seeds, whole.batch.seeds[1:])
    assert rest.ids == whole.ids[1:]


@pytest.mark.parametrize("kind", ["bool", "ones", "grey", "numpy"])
def test_masks_at_hand_may_be_of_any_kind(kind):
    drawn = torch.zeros(2, 8, 8, dtype=torch.uint8)
    drawn[:, :4] = 255
    given = {"bool": drawn > 0, "ones": (drawn > 0).long(), "grey": drawn, "numpy": drawn.numpy()}[kind]
    samples = of_tensors(noise(2), masks=given).samples(0, 2, 0, CPU)
    assert torch.equal(samples.objects[:, 0], drawn > 0)
    assert not samples.unlabelled.any()


def test_grey_values_between_are_unlabelled():
    drawn = torch.zeros(2, 8, 8, dtype=torch.uint8)
    drawn[:, :4], drawn[:, 6:] = 255, 128
    samples = of_tensors(noise(2), masks=drawn).samples(0, 2, 0, CPU)
    assert torch.equal(samples.unlabelled, drawn == 128)
    assert torch.equal(samples.objects[:, 0], drawn == 255)
