"""PIOU and SIOU: exact top-K for clean, a histogram's bin edge for the authors."""

import numpy as np
import pytest
import torch
from torch import Tensor

from saliometer.metrics._regions import _bin_edge
from saliometer.metrics.piou import piou
from saliometer.metrics.siou import siou
from saliometer.seeds import forks
from saliometer.tasks.textbox import textbox
from saliometer.types import PRIMARY, SECONDARY
from toys import samples_of

TOY = samples_of([[[2, 21, 3, 16], [40, 50, 30, 40]]], [[PRIMARY, SECONDARY]], side=64)
PAIR = samples_of([[[0, 2, 0, 2], [2, 4, 2, 4]]], [[PRIMARY, SECONDARY]], side=4)
SWAPPED = samples_of([[[0, 2, 0, 2], [2, 4, 2, 4]]], [[SECONDARY, PRIMARY]], side=4)


def test_the_papers_toy():
    """A at 1, B at 0.8, background 0.001: the top 247 pixels are A."""
    maps = torch.full((1, 64, 64), 0.001, dtype=torch.float64)
    maps[:, 2:21, 3:16], maps[:, 40:50, 30:40] = 1, 0.8
    assert piou(maps, TOY).item() == 1
    assert siou(maps, TOY).item() == 0


def test_b_above_a_takes_its_pixels_first():
    """B's 100 pixels and 147 of A's 247 are chosen: 147/347 and 100/247."""
    maps = torch.full((1, 64, 64), 0.001, dtype=torch.float64)
    maps[:, 2:21, 3:16], maps[:, 40:50, 30:40] = 1, 1.2
    assert piou(maps, TOY).item() == pytest.approx(147 / 347)
    assert siou(maps, TOY).item() == pytest.approx(100 / 247)


def half_right() -> Tensor:
    """Two of the first object's four pixels, then two of the second's."""
    maps = torch.zeros(1, 4, 4, dtype=torch.float64)
    maps[0, 0, :2], maps[0, 3, 2:] = torch.tensor([9.0, 8.0]), torch.tensor([7.0, 6.0])
    return maps


def test_two_of_four_pixels_right():
    """Intersection 2, union 6, for both."""
    assert piou(half_right(), PAIR).item() == pytest.approx(2 / 6)
    assert siou(half_right(), PAIR).item() == pytest.approx(2 / 6)


def test_exchanging_the_roles_of_equal_objects_exchanges_the_metrics():
    maps = half_right()
    maps[0, 1, 1] = 10  # three of the first, one of the second: 6 falls out
    assert piou(maps, PAIR).item() == pytest.approx(3 / 5) == siou(maps, SWAPPED).item()
    assert siou(maps, PAIR).item() == pytest.approx(1 / 7) == piou(maps, SWAPPED).item()


def test_siou_picks_as_many_pixels_as_the_primary_object_has():
    samples = samples_of([[[0, 1, 0, 1], [2, 4, 2, 4]]], [[PRIMARY, SECONDARY]], side=4)  # 1 and 4 pixels
    maps = torch.zeros(1, 4, 4, dtype=torch.float64)
    maps[0, 2:, 2:] = torch.tensor([[4.0, 3.0], [2.0, 1.0]])
    assert siou(maps, samples).item() == pytest.approx(1 / 4)  # one pixel is picked, not four


def test_two_primary_objects_are_one_region_for_clean_and_two_for_the_authors():
    """A perfect map: 1 for clean, the mean of 4/8 and 4/8 for the authors."""
    samples = samples_of([[[0, 2, 0, 2], [2, 4, 2, 4]]], [[PRIMARY, PRIMARY]], side=4)
    maps = samples.region(PRIMARY, "box").double()
    assert piou(maps, samples).item() == 1
    assert piou(maps, samples, definition="authors").item() == 0.5


def test_overlapping_primary_boxes_ask_for_the_pixels_of_their_union():
    samples = samples_of([[[0, 2, 0, 2], [1, 3, 1, 3]]], [[PRIMARY, PRIMARY]], side=4)
    maps = samples.region(PRIMARY, "box").double()
    assert maps.sum() == 7
    assert piou(maps, samples).item() == 1


def test_a_flat_map_scores_chance():
    """500 seeds on a 16-pixel image: 4 pixels drawn, hypergeometric with 4 of 16, so E[h / (8 - h)] is known."""
    count = 500
    samples = samples_of([[[0, 2, 0, 2], [2, 4, 2, 4]]] * count, [[PRIMARY, SECONDARY]] * count, side=4)
    object.__setattr__(samples.batch, "seeds", forks(1, torch.arange(count)))
    hits = np.arange(5)
    ways = [1 * 495, 4 * 220, 6 * 66, 4 * 12, 1]  # of 1820
    wanted = (np.array(ways) / 1820 * hits / (8 - hits)).sum()
    for metric in (piou, siou):
        found = metric(torch.ones(count, 4, 4, dtype=torch.float64), samples).mean().item()
        assert found == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize(("wanted", "chosen"), [(1, 10), (10, 10), (11, 20), (25, 30), (90, 90), (91, 100), (100, 100)])
def test_the_authors_threshold_is_the_edge_of_one_of_ten_bins(wanted, chosen):
    """The numbers 0 to 99: each bin of width 9.9 holds ten of them."""
    maps = torch.arange(100, dtype=torch.float64).view(1, 10, 10)
    edge = _bin_edge(maps, torch.tensor([wanted]))
    assert (maps >= edge).sum() == chosen


def test_a_map_of_few_high_values_makes_the_authors_choose_everything():
    """A letter's ink is less than its box: even a perfect map picks all 4096 pixels, and 285 of them are A's box."""
    samples = textbox("simple-nr", count=1)
    assert samples.buckets == ("2",)
    maps = samples.objects[:, 0].double()
    assert piou(maps, samples, definition="authors").item() == pytest.approx(285 / 4096)


def test_the_choice_of_pixels_ignores_a_monotone_change():
    samples = textbox("complex-cr1", count=10)
    maps = torch.rand(10, 64, 64, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for metric in (piou, siou):
        assert torch.equal(metric(maps, samples), metric(maps.exp(), samples))
        assert torch.equal(metric(maps, samples), metric(maps**5, samples))
