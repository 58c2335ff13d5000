"""PMAFL and SMAFL: the focus per pixel."""

import pytest
import torch

from saliometer.metrics.pafl import pafl
from saliometer.metrics.pmafl import pmafl
from saliometer.metrics.smafl import smafl
from saliometer.tasks.textbox import textbox
from saliometer.types import PRIMARY, SECONDARY
from toys import samples_of


def test_it_is_the_focus_divided_by_the_pixels_of_the_region():
    samples = samples_of([[[0, 2, 0, 2], [3, 4, 2, 4]]], [[PRIMARY, SECONDARY]], side=4)
    maps = torch.zeros(1, 4, 4, dtype=torch.float64)
    maps[0, 0, 0], maps[0, 1, 1], maps[0, 3, 3] = 1.0, 2.0, 5.0
    assert pmafl(maps, samples).item() == pytest.approx(3 / 8 / 4)
    assert smafl(maps, samples).item() == pytest.approx(5 / 8 / 2)


def test_it_is_the_mean_over_the_concatenated_boxes_for_the_authors():
    """Overlapping boxes: 5/8 over 8 pixels for the authors, 3/8 over the union's 7 for clean."""
    samples = samples_of([[[0, 2, 0, 2], [1, 3, 1, 3]]], [[PRIMARY, PRIMARY]], side=4)
    maps = torch.zeros(1, 4, 4, dtype=torch.float64)
    maps[0, 0, 0], maps[0, 1, 1], maps[0, 3, 3] = 1.0, 2.0, 5.0
    assert pmafl(maps, samples, definition="authors").item() == pytest.approx(5 / 8 / 8)
    assert pmafl(maps, samples).item() == pytest.approx(3 / 8 / 7)


def test_a_flat_map_is_as_dense_on_one_region_as_on_the_other():
    samples = textbox("complex-cr2", count=10)
    flat = torch.ones(10, 64, 64, dtype=torch.float64)
    has_both = (samples.roles == PRIMARY).any(1) & (samples.roles == SECONDARY).any(1)
    one, other = pmafl(flat, samples)[has_both], smafl(flat, samples)[has_both]
    torch.testing.assert_close(one, torch.full_like(one, 1 / 4096))
    torch.testing.assert_close(one, other)


def test_a_small_object_may_be_denser_with_less_of_the_focus():
    """Box2 is 16 of 4096 pixels, a letter 285: equal shares make Box2 17.8 times as dense."""
    samples = textbox("complex-cr4", count=1, start=3)  # bucket 4 would be Box2 alone
    assert samples.buckets == ("4",)
    maps = samples.region(PRIMARY, "box").double()
    torch.testing.assert_close(pmafl(maps, samples), pafl(maps, samples) / 16)
