"""The randomisation tests on two stacks of maps: values, reasons where there are none, parameters that mean nothing."""

import math

import pytest
import torch

from saliometer.metrics.efficient_mprt import efficient_mprt
from saliometer.metrics.mprt import mprt
from saliometer.metrics.smooth_mprt import smooth_mprt
from saliometer.sanity.similarity import SIMILARITIES
from saliometer.seeds import normal

MAPS = normal(torch.arange(3), "maps", torch.zeros(3, 3, 24, 24))
OTHERS = normal(torch.arange(3), "others", torch.zeros(3, 3, 24, 24))


@pytest.mark.parametrize("test", [mprt, smooth_mprt])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_the_same_maps_are_alike_and_a_broken_one_has_no_value(test, similarity):
    others = MAPS.clone()
    others[1, 0, 0, 0] = torch.nan
    found = test(MAPS, others, similarity=similarity)
    assert found.values[[0, 2]].tolist() == pytest.approx([1, 1], abs=1e-6)
    assert found.invalid["nan map"].tolist() == [False, True, False]


def test_a_constant_map_has_a_reason():
    others = OTHERS.clone()
    others[0] = 0.5
    found = mprt(MAPS, others)
    assert found.values.isnan().tolist() == [True, False, False]
    assert found.invalid["a constant map has no similarity"].tolist() == [True, False, False]
    small = mprt(MAPS[..., :8, :8], OTHERS[..., :8, :8], similarity="ssim")
    assert small.invalid["SSIM wants 11 pixels a side"].all()


def test_ranks_know_no_monotone_change_of_positive_maps():
    one, other = MAPS.abs().sum(1, keepdim=True), OTHERS.abs().sum(1, keepdim=True)
    found = mprt(one, other).values
    torch.testing.assert_close(mprt(one.exp(), other**3).values, found)


def test_entropy_rises_by_a_known_share():
    one = torch.zeros(1, 1, 10, 10)
    one[..., :5, :] = 1  # two values, half each: ln 2
    four = torch.arange(4.0).repeat_interleave(25).view(1, 1, 10, 10)  # ln 4
    assert efficient_mprt(one, four).values.tolist() == pytest.approx([1.0])
    assert efficient_mprt(four, one).values.tolist() == pytest.approx([-0.5])
    assert math.isnan(efficient_mprt(torch.ones(1, 1, 4, 4), torch.rand(1, 1, 4, 4)).values)


@pytest.mark.parametrize(
    ("test", "params", "words"),
    [
        (mprt, {"order": "down"}, "there is no order 'down'"),
        (mprt, {"draws": 0}, "mprt: draws=0, wanted 1 or more"),
        (smooth_mprt, {"noise": -0.1}, "smooth_mprt: noise=-0.1, wanted 0 or more"),
        (efficient_mprt, {"target": "mine"}, "there is no target 'mine'"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(test, params, words):
    with pytest.raises((ValueError, LookupError), match=words):
        test(MAPS, OTHERS, **params)
