"""Shapes, pixel by pixel, and the halves that places keep to."""

import pytest
import torch

from saliometer.tasks import anywhere, cross, disc, left, right, ring, square, triangle

DRAWN = {
    "square": (square(3), "### ### ###"),
    "disc": (disc(5), ".###. ##### ##### ##### .###."),
    "ring": (ring(6), "###### ###### ##..## ##..## ###### ######"),
    "thin ring": (ring(4, thick=1), "#### #..# #..# ####"),
    "cross": (cross(5), ".###. ##### ##### ##### .###."),
    "thin cross": (cross(5, thick=1), "..#.. ..#.. ##### ..#.. ..#.."),
    "triangle": (triangle(3), "#.. ##. ###"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_shape_has_just_these_pixels(name):
    shape, wanted = DRAWN[name]
    assert " ".join("".join("#" if value else "." for value in row) for row in shape.tolist()) == wanted
    assert set(shape.unique().tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(("place", "first", "last"), [(anywhere, 0, 54), (left, 0, 26), (right, 27, 54)])
def test_a_place_reaches_both_ends_of_its_half(place, first, last):
    draws = torch.tensor([[0.0, 0.0], [0.9999, 0.9999]])
    assert place(draws, (55, 55)).tolist() == [[0, first], [54, last]]
