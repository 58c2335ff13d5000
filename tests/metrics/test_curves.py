"""The parts of an insertion or deletion curve."""

import pytest
import torch

from saliometer.metrics._curves import steps_of, swapped, tied_maps, trapezoid


@pytest.mark.parametrize(
    ("pixels", "steps", "wanted"),
    [
        (50176, 224, (224, 224)),
        (50176, 28, (1792, 28)),
        (10, 4, (3, 4)),
        (10, 6, (2, 5)),
        (4, 9, (1, 4)),
        (9, 1, (9, 1)),
    ],
)
def test_pixels_of_a_step_and_how_many_steps_it_takes(pixels, steps, wanted):
    assert steps_of(pixels, steps) == wanted


def test_no_step_at_all_is_refused():
    with pytest.raises(ValueError, match="steps=0: wanted 1 or more"):
        steps_of(16, 0)


def test_the_area_is_that_of_the_formula_and_each_step_has_the_same_width():
    curve = torch.tensor([[1.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 1.0]]).double()
    assert trapezoid(curve).tolist() == pytest.approx([(2.0 - 0.5) / 3, (2.0 - 0.5) / 3])


def test_copies_are_the_same_however_many_are_made_at_once():
    places = torch.stack([torch.randperm(9).view(3, 3) for _ in range(2)])
    start, end = torch.zeros(2, 3, 3, 3), torch.ones(2, 3, 3, 3)
    variants = swapped(places, 2, start, end, first=1)
    together = variants(range(4))
    assert together.shape == (4, 2, 3, 3, 3)
    assert torch.equal(together, torch.cat([variants(range(k, k + 1)) for k in range(4)]))
    assert together.sum((2, 3, 4)).tolist() == [[6.0, 6.0], [12.0, 12.0], [18.0, 18.0], [24.0, 24.0]]
    assert torch.equal(together[0, 0, 0].bool(), places[0] < 2)


def test_maps_with_two_equal_pixels_are_found():
    maps = torch.tensor([[[1.0, 2.0, 3.0]], [[1.0, 2.0, 1.0]], [[0.0, -0.0, 3.0]]])
    assert tied_maps(maps).tolist() == [False, True, True]
