"""The entropy of a map's histogram, against numpy and scipy."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from saliometer.sanity.entropy import entropy
from saliometer.seeds import normal


@pytest.mark.parametrize("bins", [1, 10, 100])
def test_it_is_that_of_numpys_histogram(bins):
    maps = normal(torch.arange(4), "entropy", torch.zeros(4, 30, 30))
    maps[1] = maps[1].round()  # values on the edges
    wanted = [stats.entropy(np.histogram(one.double().numpy(), bins=bins)[0]) for one in maps]
    assert entropy(maps, bins).tolist() == pytest.approx(wanted, abs=1e-12)


def test_known_answers():
    maps = torch.stack((torch.arange(100.0).view(10, 10), torch.eye(10), torch.zeros(10, 10)))
    found = entropy(maps, 100)
    assert float(found[0]) == pytest.approx(math.log(100))
    assert float(found[1]) == pytest.approx(-0.1 * math.log(0.1) - 0.9 * math.log(0.9))
    assert math.isnan(found[2])
    assert entropy(torch.full((1, 2, 2), torch.nan)).isnan().all()


def test_it_knows_no_scale_and_no_shift_but_one_outlier():
    maps = normal(torch.arange(2), "scale", torch.zeros(2, 20, 20))
    torch.testing.assert_close(entropy(maps), entropy(7.5e-9 * maps.double() + 3))
    maps[:, 0, 0] = 1e6
    assert entropy(maps).max() < 0.05
