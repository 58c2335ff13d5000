"""Labellings and their gates, on networks that are known to look where they should, or elsewhere."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from saliometer.engine.causal import Causal, bar, gates, inputs, right
from saliometer.sanity.gates import missed
from saliometer.types import PRIMARY, SECONDARY, Model


class Sums(nn.Module):
    """Deleted (1) where the chosen rows hold less ink than `least`."""

    def __init__(self, rows: slice, least: float = 3.0) -> None:
        super().__init__()
        self.rows, self.least = rows, least

    def forward(self, images: Tensor) -> Tensor:
        ink = images[:, 0, self.rows].sum((1, 2))
        return torch.stack((ink - self.least, self.least - ink), 1)


class Always(nn.Module):
    def __init__(self, label: int, classes: int) -> None:
        super().__init__()
        self.row = nn.functional.one_hot(torch.tensor(label), classes).float()

    def forward(self, images: Tensor) -> Tensor:
        return self.row.expand(len(images), -1)


def of(net: nn.Module) -> Model:
    return Model("toy", net, "", "")


def random(classes: int) -> list[Model]:
    return [of(Always(label, classes)) for label in range(classes)]


def test_a_labelling_knows_its_classes_and_its_name():
    assert Causal("shape_digits", "shape").classes == 3
    assert Causal("shape_digits", "digit").classes == 10
    assert Causal("shape_digits", "digit").name == "digit(source=sklearn)"
    assert Causal("pairs", "first", side=56).name == "first(side=56,source=sklearn)"
    assert Causal("pairs", "first", side=56).samples(count=2).batch.images.shape == (2, 1, 56, 112)


@pytest.mark.parametrize(
    ("task", "setting", "error", "message"),
    [
        ("textbox", "simple-fr", LookupError, "there is no causal task 'textbox'"),
        ("digits", "shape", LookupError, "there is no setting of digits 'shape'"),
    ],
)
def test_what_is_no_labelling_is_refused(task, setting, error, message):
    with pytest.raises(error, match=message):
        Causal(task, setting)
    with pytest.raises(ValueError, match="has no choice of side"):
        Causal("digits", "digit", side=64)


def test_one_that_looks_where_the_label_is_passes_every_gate():
    causal = Causal("half_digits", "bottom")
    found = gates(causal, [of(Sums(slice(14, 28)))] * 2, random(2), "digit_cnn", count=200)
    assert [gate.name for gate in found] == [
        "accuracy of the worst seed",
        "mean accuracy of random models",
        "accuracy with A erased",
        "change of accuracy with N erased",
    ]
    assert missed(found) == ""
    assert [gate.value for gate in found] == [1.0, 0.5, 0.0, 0.0]  # without their bottom, whole digits are not whole


def test_one_that_sums_all_ink_is_found_out():
    found = gates(Causal("half_digits", "bottom"), [of(Sums(slice(0, 28), 70.0))], random(2), "digit_cnn", count=200)
    assert "change of accuracy with N erased" in missed(found)


def test_what_is_said_of_a_digit_without_both_halves_plays_no_part():
    """One that calls an empty image whole, and all else by its bottom half."""

    class Unless(Sums):
        def forward(self, images):
            empty = images.flatten(1).sum(1) == 0
            return super().forward(images).where(~empty[:, None], torch.tensor([[1.0, 0.0]]))

    found = gates(Causal("half_digits", "bottom"), [of(Unless(slice(14, 28)))], [], "digit_cnn", count=200)
    assert missed(found) == ""


def test_images_without_what_is_erased_play_no_part():
    """One that always says 'rectangle' is right on a third of all, on half of those with a shape."""
    found = gates(Causal("shape_digits", "shape"), [of(Always(1, 3))], [], "digit_cnn", count=90)
    values = {gate.name: gate.value for gate in found}
    assert values["accuracy of the worst seed"] == pytest.approx(1 / 3)
    assert values["accuracy with A erased"] == pytest.approx(1 / 2)
    assert "mean accuracy of random models" not in values


def test_a_gate_that_is_missed_says_which_classes_move():
    """One that knows shapes by their ink, but takes a circle without a digit for nothing."""

    class Lone(nn.Module):
        def forward(self, images):
            labels = [known.get(key, 0) for key in inks(images)]
            return nn.functional.one_hot(torch.tensor(labels), 3).float()

    def inks(images):
        return torch.round(1e4 * images.sum((1, 2, 3))).tolist()

    causal = Causal("shape_digits", "shape")
    held = causal.held_out()
    samples, lone = held.samples("test", 90), held.erased(SECONDARY, "test", 90)
    known = dict(zip(inks(samples.batch.images), samples.labels.tolist(), strict=True))
    known |= dict.fromkeys(inks(lone[samples.labels == 1]), 1)
    *others, last = gates(causal, [of(Lone())], [], "digit_cnn", count=90)
    assert [gate.passed for gate in others] == [True, True]
    assert (last.value, last.passed) == (pytest.approx(1 / 3), False)
    assert last.note.startswith("by class circle -1.000, nothing +0.000, rectangle +0.000; a circle without its digit")
    assert all(gate.note == "" for gate in others)


def test_classes_whose_images_show_nothing_to_erase_are_not_named():
    """Digits that lack a half are not looked at, so nothing is known of how they move."""
    *_, last = gates(Causal("half_digits", "bottom"), [of(Sums(slice(0, 14)))], [], "digit_cnn", count=200)
    assert (last.passed, last.note) == (False, "by class whole -1.000")


@pytest.mark.parametrize(
    ("task", "setting", "wanted"),
    [
        ("digits", "digit", tuple("0123456789")),
        ("half_digits", "top", ("whole", "half")),
        ("shape_digits", "shape", ("nothing", "rectangle", "circle")),
        ("shape_digits", "digit", tuple("0123456789")),
        ("pairs", "first", tuple("01234")),
        ("pairs", "second", tuple("56789")),
    ],
)
def test_classes_have_names(task, setting, wanted):
    assert Causal(task, setting).named == wanted


def test_where_nothing_distracts_nothing_is_erased():
    found = gates(Causal("digits", "digit"), [of(Always(0, 10))], random(10), "digit_cnn", count=50)
    assert [gate.name for gate in found][-1] == "accuracy with A erased"


@pytest.mark.parametrize(
    ("task", "setting", "arch", "wanted"),
    [
        ("digits", "digit", "digit_cnn", (0.985, 1.0)),
        ("half_digits", "top", "digit_cnn", (0.99, 1.0)),
        ("shape_digits", "digit", "digit_cnn(width=0.5)", (0.985, 1.0)),
        ("pairs", "first", "digit_cnn", (0.95, 1.0)),
        ("pairs", "first", "torchvision:resnet18", (0.74, 1.0)),
    ],
)
def test_the_bars_are_those_of_the_protocol(task, setting, arch, wanted):
    assert bar(Causal(task, setting), arch) == wanted


def test_a_network_that_was_stopped_early_may_not_know_too_much():
    assert bar(Causal("pairs", "first"), "torchvision:resnet18", converged=False) == (0.74, 0.80)
    assert bar(Causal("pairs", "first"), "digit_cnn", converged=False) == (0.95, 1.0)


def test_photographs_are_asked_for_less(tmp_path):
    for split in ("train", "test"):
        np.savez(
            tmp_path / f"{split}.npz",
            x=np.zeros((10, 32, 32, 3), np.uint8),
            y=np.arange(10),
        )
    assert bar(Causal("pairs", "first", str(tmp_path)), "resnet18") == (0.60, 1.0)


def test_models_that_scale_pixels_get_them_so():
    causal = Causal("half_digits", "bottom")
    samples = causal.samples(count=20)
    model = Model("toy", Sums(slice(14, 28)), "", "", mean=(0.5,), std=(0.25,))
    given = inputs(samples, model).batch.images
    torch.testing.assert_close(given, (samples.batch.images - 0.5) / 0.25)
    torch.testing.assert_close(model.pixels(given), samples.batch.images)
    assert right(of(Sums(slice(14, 28))), samples.batch.images, samples.labels).all()
    assert not right(model, samples.batch.images, samples.labels).all()


def test_held_out_images_are_others_and_roles_erase_what_they_name():
    causal = Causal("shape_digits", "digit")
    assert not torch.equal(causal.samples(count=30).batch.images, causal.held_out().samples(count=30).batch.images)
    left = {role: causal.erased(role, count=30, start=10) for role in (PRIMARY, SECONDARY)}
    both = causal.samples(count=30, start=10).batch.images
    assert torch.equal(torch.maximum(left[PRIMARY], left[SECONDARY]), both)
