"""E and its parts on maps whose distances are known by hand, the permutation test, and equation (1)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from saliometer.sanity.effect import (
    DISTANCES,
    energy,
    energy_per_image,
    energy_per_seed,
    pairwise,
    permutation,
    posterior,
    shares,
    weighted_effect,
)
from saliometer.sanity.similarity import gaussian_ssim, second_moment
from saliometer.seeds import fork, forks, uniform
from saliometer.tasks import half_digits, shape_digits

A, B = (0, 0), (3, 3)


def points(*places: tuple[int, int], images: int = 3) -> torch.Tensor:
    """(M, n, 1, 4, 4): the whole mass of each model's maps on one pixel."""
    maps = torch.zeros(len(places), images, 1, 4, 4)
    for model, (row, column) in enumerate(places):
        maps[model, :, 0, row, column] = 2.0
    return maps


def noise(models: int, images: int, side: int = 28, seed: int = 0) -> torch.Tensor:
    seeds = forks(fork("effect", seed), torch.arange(models * images))
    return uniform(seeds, "noise", 1, side, side).view(models, images, 1, side, side)


def test_shares_are_absolute_sum_over_channels_and_add_up_to_1():
    maps = torch.tensor([[[1.0, -1.0]], [[0.0, -2.0]]])  # (C, H, W): channels of one map
    found, valid = shares(maps)
    assert found.tolist() == [[0.25, 0.75]]
    assert valid.item()


@pytest.mark.parametrize("value", [0.0, torch.nan, torch.inf])
def test_a_map_without_mass_or_numbers_is_invalid(value):
    maps = torch.full((2, 1, 4, 4), value)
    maps[1] = 1.0
    found, valid = shares(maps)
    assert valid.tolist() == [False, True]
    assert found[0].isnan().all()
    torch.testing.assert_close(found[1].sum(), torch.tensor(1.0))


@pytest.mark.parametrize("scale", [1e-38, 1e30])
def test_tiny_and_huge_maps_have_the_same_shares(scale):
    maps = torch.tensor([[[1.0, 3.0]]])
    torch.testing.assert_close(shares(maps * scale)[0], torch.tensor([[0.25, 0.75]]))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1 << 30), st.floats(1e-3, 1e3))
def test_total_variation_is_a_distance_in_0_to_1_that_knows_no_scale_and_no_sign(seed, factor):
    maps = noise(3, 2, side=5, seed=seed) - 0.5
    found = pairwise(maps)
    assert found.shape == (2, 3, 3)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found.diagonal(dim1=1, dim2=2) == 0).all()
    torch.testing.assert_close(found, found.transpose(1, 2))
    assert (found[:, 0, 2] <= found[:, 0, 1] + found[:, 1, 2] + 1e-6).all()
    torch.testing.assert_close(pairwise(-factor * maps), found, rtol=1e-4, atol=1e-6)


def test_distances_in_parts_are_those_of_the_whole(monkeypatch):
    maps = noise(4, 6, side=16)
    whole = {name: pairwise(maps, name) for name in DISTANCES}
    monkeypatch.setattr("saliometer.sanity.effect.ROOM", 2 * maps[:, 0].numel())
    for name, found in whole.items():
        torch.testing.assert_close(pairwise(maps, name), found)
        assert (found.diagonal(dim1=1, dim2=2) == 0).all()


def test_spearman_is_that_of_scipy():
    maps = noise(3, 2, side=6) - 0.5
    for name, read in (("spearman_abs", torch.abs), ("spearman", lambda some: some)):
        found = pairwise(maps, name)
        for image in range(2):
            wanted = stats.spearmanr(read(maps[:, image]).flatten(1).numpy(), axis=1).statistic
            np.testing.assert_allclose(1 - found[image].numpy(), wanted, atol=1e-9)


def test_maps_may_keep_their_sign_and_be_scaled_by_their_second_moment():
    maps = noise(2, 3, side=16) - 0.5
    plain, scaled = (pairwise(maps, "ssim", scaling) for scaling in ("plain", "second_moment"))
    wanted = 1 - gaussian_ssim(*(second_moment(some) for some in maps))
    torch.testing.assert_close(scaled[:, 0, 1], wanted)
    assert not torch.allclose(plain[:, 0, 1], scaled[:, 0, 1])


def test_an_unknown_distance_is_refused():
    with pytest.raises(LookupError, match="there is no distance 'euclid'"):
        pairwise(noise(2, 1), "euclid")


def test_two_point_masses_are_one_apart():
    found = energy(pairwise(points(A, A, B, B)), 2)
    assert (found.between, found.trained, found.random) == (1, 0, 0)
    assert found.energy == 1
    assert found.normalised == pytest.approx(1)


def test_a_mixture_by_hand():
    found = energy(pairwise(points(A, A, B, B, B, B)), 4)  # trained: half here, half there; random: all there
    assert found.between == 0.5
    assert found.trained == pytest.approx(4 / 6)
    assert found.random == 0
    assert found.energy == pytest.approx(1 / 6)
    assert found.normalised == pytest.approx(1 / 3)


def test_maps_that_know_no_weights_have_none_of_it():
    same = noise(1, 5).expand(8, -1, -1, -1, -1)
    found = energy(pairwise(same), 4)
    assert (found.between, found.trained, found.random, found.energy, found.normalised) == (0, 0, 0, 0, 0)
    assert permutation(pairwise(same), 4).p == 1


def test_fresh_noise_is_a_third_apart_everywhere_and_has_no_energy():
    found = energy(pairwise(noise(8, 40)), 4)
    for term in (found.between, found.trained, found.random):
        assert term == pytest.approx(1 / 3, abs=0.005)
    assert found.energy == pytest.approx(0, abs=0.002)


def test_energy_is_half_of_scipys_but_for_the_pairs_of_a_model_with_itself():
    shares_of_first = uniform(forks(1, torch.arange(7)), "p", 1)[:, 0].double()
    maps = torch.stack((shares_of_first, 1 - shares_of_first), 1).view(7, 1, 1, 1, 2)  # their distance is |p - q|
    found = energy(pairwise(maps), 3)
    with_itself = 2 * found.between - found.trained * 2 / 3 - found.random * 3 / 4
    wanted = stats.energy_distance(shares_of_first[:3], shares_of_first[3:]) ** 2
    assert with_itself == pytest.approx(wanted, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_the_order_of_models_within_a_set_plays_no_part(seed):
    distances = pairwise(noise(7, 3, side=4, seed=seed))
    order = torch.tensor([2, 0, 1, 5, 6, 3, 4])
    turned = distances[:, order][:, :, order]
    assert energy(turned, 3).energy == pytest.approx(energy(distances, 3).energy)
    assert permutation(turned, 3).p == permutation(distances, 3).p


def test_per_image_and_per_seed_values_average_to_the_whole():
    distances = pairwise(torch.cat((noise(3, 5, side=6) ** 3, noise(4, 5, side=6, seed=1))))
    whole = energy(distances, 3).energy
    assert energy_per_image(distances, 3).mean().item() == pytest.approx(whole)
    assert energy_per_seed(distances, 3).mean().item() == pytest.approx(whole)


def test_an_invalid_map_is_left_out_of_the_means():
    maps = points(A, A, A, B, B, B)
    maps[0, 0] = 0  # one image of one model
    maps[5] = 0  # a dead model
    distances = pairwise(maps)
    assert distances[0, 0].isnan().all()
    assert not distances[1, 0, :5].isnan().any()
    assert energy(distances, 3).energy == 1
    assert energy_per_image(distances, 3).tolist() == [1, 1, 1]
    assert permutation(distances, 3).p < 0.2
    assert np.isnan(permutation(torch.full((4, 4), torch.nan), 2).p)


@pytest.mark.parametrize("trained", [1, 3])
def test_fewer_than_two_models_of_a_kind_have_no_noise_floor(trained):
    with pytest.raises(ValueError, match="wanted two or more of each"):
        energy(torch.zeros(1, 4, 4), trained)


@pytest.mark.parametrize(("trained", "random", "splits", "smallest"), [(4, 4, 70, 2 / 70), (5, 20, 53130, 1 / 53130)])
def test_the_smallest_p_that_a_number_of_models_allows(trained, random, splits, smallest):
    maps = points(*[A] * trained, *[B] * random, images=1)
    found = permutation(pairwise(maps), trained)
    assert (found.splits, found.exact) == (splits, True)
    assert found.p == pytest.approx(smallest)  # with as many of each the complement is the same split


def test_of_many_splits_some_are_drawn_the_same_each_time():
    distances = pairwise(points(*[A] * 10, *[B] * 20, images=1))
    found = permutation(distances, 10, draws=999)
    assert (found.splits, found.exact, found.p) == (999, False, 1 / 1000)
    blurred = pairwise(noise(30, 2, side=4))
    one, same, other = (permutation(blurred, 10, draws=999, seed=seed).p for seed in (0, 0, 1))
    assert one == same
    assert abs(one - other) < 0.1


def test_the_permutation_test_is_that_of_scipy():
    distances = pairwise(torch.cat((noise(4, 3, side=5) ** 1.3, noise(5, 3, side=5, seed=3))))
    matrix = distances.mean(0).numpy()

    def statistic(one, other):
        def within(some):
            return matrix[np.ix_(some, some)].sum() / (len(some) * (len(some) - 1))

        return matrix[np.ix_(one, other)].mean() - (within(one) + within(other)) / 2

    wanted = stats.permutation_test(
        (np.arange(4), np.arange(4, 9)), statistic, vectorized=False, n_resamples=np.inf, alternative="greater"
    )
    found = permutation(distances, 4)
    assert found.p == pytest.approx(wanted.pvalue)
    assert energy(distances, 4).energy == pytest.approx(wanted.statistic)


def test_p_is_no_smaller_than_it_says_where_nothing_is_there():
    values = [permutation(pairwise(noise(8, 2, side=3, seed=seed)), 4).p for seed in range(150)]
    assert np.mean(np.array(values) <= 0.1) < 0.17  # 0.1 and three standard errors


# Equation (1)


def test_posterior_weights_are_those_of_the_protocol():
    half = posterior({"t": 1.0, "half": half_digits.CHANCE})
    assert half == pytest.approx({"t": 2 / 3, "half": 1 / 3})
    bare = posterior({"t": 1.0, "t1": shape_digits.CHANCE, "t2": shape_digits.CHANCE})
    assert bare == pytest.approx({"t": 3 / 5, "t1": 1 / 5, "t2": 1 / 5})
    assert posterior({"t": 0.0, "t1": shape_digits.CHANCE, "t2": shape_digits.CHANCE}) == {"t": 0, "t1": 0.5, "t2": 0.5}
    with pytest.raises(ValueError, match="some task must show the image"):
        posterior({"t": 0.0})


def flat(*places: tuple[int, int], images: int = 3) -> torch.Tensor:
    return shares(points(*places, images=images))[0]


def test_effects_that_cancel_are_seen_in_the_companion_alone():
    trained = {"one": (flat(A, A) + flat(B, B)) / 2, "other": (flat(A, A) + flat((0, 1), (0, 1))) / 2}
    # against a random map on A: one moves half the mass to B, the other half to (0, 1)
    found = weighted_effect(trained, flat(A, A), {"one": 0.5, "other": 0.5}, relabellings=4)
    torch.testing.assert_close(found.effect, torch.full((3,), 0.5))
    torch.testing.assert_close(found.companion, torch.full((3,), 0.5))
    opposite = {"one": flat(A, A), "other": flat(B, B)}
    middle = (flat(A, A) + flat(B, B)) / 2
    found = weighted_effect(opposite, middle, {"one": 0.5, "other": 0.5}, relabellings=4)
    torch.testing.assert_close(found.effect, torch.zeros(3))
    torch.testing.assert_close(found.companion, torch.full((3,), 0.5))


def test_weights_may_differ_from_image_to_image():
    trained = {"one": flat(B, B), "other": flat(A, A)}
    weights = {"one": torch.tensor([1.0, 0.5, 0.0]), "other": torch.tensor([0.0, 0.5, 1.0])}
    found = weighted_effect(trained, flat(A, A), weights, relabellings=2)
    assert found.effect.tolist() == [1.0, 0.5, 0.0]
    with pytest.raises(ValueError, match="wanted the same"):
        weighted_effect(trained, flat(A, A), {"one": 1.0})


def test_the_bias_is_what_noise_alone_gives():
    trained = {"one": shares(noise(4, 30, side=8))[0]}
    random = shares(noise(6, 30, side=8, seed=1))[0]
    found = weighted_effect(trained, random, {"one": 1.0}, relabellings=50)
    assert found.effect.mean() > 0.05
    assert found.corrected.mean().abs() < 0.005
    assert found.companion_corrected.mean().abs() < 0.005
    again = weighted_effect(trained, random, {"one": 1.0}, relabellings=50)
    torch.testing.assert_close(found.effect_bias, again.effect_bias)


def test_two_tasks_share_the_noise_of_the_random_models():
    trained = {name: shares(noise(4, 30, side=8, seed=place))[0] for place, name in enumerate(("one", "other"))}
    random = shares(noise(4, 30, side=8, seed=2))[0]
    found = weighted_effect(trained, random, {"one": 0.5, "other": 0.5}, relabellings=50)
    assert found.effect.mean() > 0.05
    assert found.corrected.mean().abs() < 0.005
    assert found.companion_corrected.mean().abs() < 0.005


def test_invalid_maps_are_left_out_of_equation_1():
    trained = flat(B, B)
    trained[0] = torch.nan
    found = weighted_effect({"one": trained}, flat(A, A), {"one": 1.0}, relabellings=0)
    assert found.effect.tolist() == [1, 1, 1]
