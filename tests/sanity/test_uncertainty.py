"""Bootstrap, t-intervals, Holm and equivalence against plain loops, scipy and numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from saliometer.sanity.effect import energy, pairwise
from saliometer.sanity.uncertainty import bootstrap_contrast, bootstrap_energy, equivalent, holm, t_interval
from saliometer.seeds import fork, forks, normal, uniform


def noise(models: int, images: int, seed: int = 0) -> torch.Tensor:
    seeds = forks(fork("uncertainty", seed), torch.arange(models * images))
    return uniform(seeds, "noise", 1, 5, 5).view(models, images, 1, 5, 5)


def picks(what: str, count: int, draws: int, seed: int) -> list[list[int]]:
    lots = forks(fork("sanity bootstrap", seed), torch.arange(draws))
    return (uniform(lots, what, count) * count).long().tolist()


def test_energys_interval_is_that_of_a_plain_loop():
    distances = pairwise(torch.cat((noise(3, 4) ** 2, noise(4, 4, seed=1))))
    draws, seed, values = 200, 5, []
    d = distances.numpy()
    for ours, others, images in zip(
        *(picks(w, c, draws, seed) for w, c in (("trained", 3), ("random", 4), ("images", 4))), strict=True
    ):
        mean = d[images].mean(0)
        others = [3 + j for j in others]

        def within(some, mean=mean):
            pairs = [mean[a, b] for i, a in enumerate(some) for b in some[i + 1 :] if a != b]
            return np.mean(pairs) if pairs else np.nan

        between = np.mean([mean[a, b] for a in ours for b in others])
        values.append(between - (within(ours) + within(others)) / 2)
    found = bootstrap_energy(distances, 3, draws=draws, seed=seed)
    assert found.value == pytest.approx(energy(distances, 3).energy)
    assert np.isnan(values).any()  # a draw of one model only has no floor, and is left out
    np.testing.assert_allclose([found.low, found.high], np.nanpercentile(values, [2.5, 97.5]), rtol=1e-9)


def test_maps_that_know_no_weights_have_an_interval_of_nothing():
    found = bootstrap_energy(torch.zeros(6, 8, 8), 4, draws=100)
    assert (found.value, found.low, found.high) == (0, 0, 0)


def test_invalid_maps_are_left_out_of_the_bootstrap():
    distances = torch.ones(6, 6, 6, dtype=torch.float64)
    distances[0, 0, :] = distances[0, :, 0] = torch.nan
    found = bootstrap_energy(distances, 3, draws=200)
    assert found.low == found.high == pytest.approx(0)
    dead = torch.full((6, 6, 6), torch.nan)
    assert math.isnan(bootstrap_energy(dead, 3, draws=50).low)


def test_the_same_seed_gives_the_same_interval_for_any_number_together(monkeypatch):
    distances = pairwise(noise(8, 5))
    one = bootstrap_energy(distances, 4, draws=300)
    monkeypatch.setattr("saliometer.sanity.uncertainty.TOGETHER", 7)
    again = bootstrap_energy(distances, 4, draws=300)
    assert (again.low, again.high) == pytest.approx((one.low, one.high), abs=1e-12)
    other = bootstrap_energy(distances, 4, draws=300, seed=1)
    assert (other.low, other.high) != (one.low, one.high)


def test_a_contrast_is_that_of_a_plain_loop():
    one, other = noise(3, 6)[:, :, 0, 0, 0].double(), noise(5, 6, seed=2)[:, :, 0, 0, 1].double()
    one[0, 0] = torch.nan
    draws, seed = 100, 9
    values = []
    parts = (picks("models 0", 3, draws, seed), picks("models 1", 5, draws, seed), picks("images", 6, draws, seed))
    for first, second, images in zip(*parts, strict=True):
        a, b = one[first][:, images], other[second][:, images]
        values.append((a.nanmean() - b.nanmean()).item())
    found = bootstrap_contrast([(1.0, one), (-1.0, other)], draws=draws, seed=seed)
    assert found.value == pytest.approx((one.nanmean() - other.mean()).item())
    np.testing.assert_allclose([found.low, found.high], np.percentile(values, [2.5, 97.5]), rtol=1e-9)
    with pytest.raises(ValueError, match="wanted the same images"):
        bootstrap_contrast([(1.0, one), (-1.0, other[:, :3])])


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    covered = 0
    for trial in range(120):
        seeds = forks(fork("cover", trial), torch.arange(12))
        models = normal(seeds, "model", torch.empty(12, 1, dtype=torch.float64))
        images = normal(forks(fork("images", trial), torch.arange(1)), "image", torch.empty(1, 30, dtype=torch.float64))
        found = bootstrap_contrast([(1.0, models + images)], draws=300, seed=trial)
        covered += found.low <= 0 <= found.high
    assert 0.85 < covered / 120 <= 0.99


def test_a_t_interval_is_scipys():
    values = torch.tensor([0.1, 0.3, 0.2, 0.6], dtype=torch.float64)
    found = t_interval(values)
    low, high = stats.t.interval(0.95, 3, loc=values.mean(), scale=stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((0.3, low, high))
    assert math.isnan(t_interval(values[:1]).low)
    assert t_interval(torch.cat((values, torch.tensor([torch.nan])))) == found


def test_holm_by_hand():
    found = holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005})
    assert found == pytest.approx({"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02})
    assert holm({"a": 0.4, "b": 0.9}) == pytest.approx({"a": 0.8, "b": 0.9})
    assert holm({"a": 0.7, "b": 0.9}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


def test_an_undefined_p_counts_as_a_test_and_stays_undefined():
    found = holm({"a": 0.01, "b": math.nan, "c": 0.02})
    assert found["a"] == pytest.approx(0.03)
    assert found["c"] == pytest.approx(0.04)
    assert math.isnan(found["b"])


@pytest.mark.parametrize("shift", [0.0, 0.012, 0.03])
def test_equivalence_is_two_one_sided_t_tests(shift):
    values = torch.tensor([0.01, 0.0, -0.01, 0.0], dtype=torch.float64) + shift
    found = equivalent(values, 0.02)
    above = stats.ttest_1samp(values, -0.02, alternative="greater").pvalue
    below = stats.ttest_1samp(values, 0.02, alternative="less").pvalue
    assert found.p == pytest.approx(max(above, below))
    assert found.holds == (found.p < 0.05)
    assert equivalent(torch.zeros(4), 0.02).holds
    assert not equivalent(torch.full((4,), 0.05), 0.02).holds
    assert not equivalent(torch.zeros(1), 0.02).holds
