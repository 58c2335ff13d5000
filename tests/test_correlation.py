"""Correlations of rows, against scipy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from saliometer.correlation import mean_ranks, pearson, spearman


@pytest.mark.parametrize(("ours", "theirs"), [(pearson, stats.pearsonr), (spearman, stats.spearmanr)])
@pytest.mark.parametrize("levels", [3, 1000])
def test_it_is_scipys(ours, theirs, levels):
    generator = torch.Generator().manual_seed(levels)
    one, other = (torch.randint(levels, (7, 30), generator=generator).double() for _ in range(2))
    wanted = [theirs(a, b)[0] for a, b in zip(one.numpy(), other.numpy(), strict=True)]
    assert ours(one, other).tolist() == pytest.approx(wanted, abs=1e-12)


def test_equal_values_share_the_mean_of_their_ranks():
    row = torch.tensor([[5.0, 1.0, 5.0, 0.0, 5.0, 1.0]])
    assert np.array_equal(mean_ranks(row)[0].numpy() + 1, stats.rankdata(row[0].numpy()))


@pytest.mark.parametrize("ours", [pearson, spearman])
def test_no_spread_and_no_number_have_no_correlation(ours):
    one = torch.tensor([[1.0, 2.0, 3.0], [0.1, 0.1, 0.1], [1.0, torch.nan, 2.0], [3.0, 1.0, 2.0]])
    other = torch.tensor([[1.0, 2.0, 4.0]] * 3 + [[7.0, 7.0, 7.0]])
    assert ours(one, other).isnan().tolist() == [False, True, True, True]


@given(scale=st.floats(-300, 300))
def test_no_square_is_lost_however_small_or_large_the_numbers(scale):
    one = torch.tensor([[1.0, 3.0, 2.0, 5.0]]).double()
    assert pearson(one * 10**scale, one).item() == pytest.approx(1, abs=1e-9)
