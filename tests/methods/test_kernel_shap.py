"""KernelSHAP: the games of methods.md 8.3, exact Shapley values by definition, sampled ones, and degenerate cases."""

from itertools import combinations
from math import comb, factorial

import pytest
import torch
from scipy import stats
from torch import Tensor

from saliometer.methods._coalitions import coalitions
from toys import Formula, Spy, batch_of, explain, explained, flat, model_of, noise_batch, seeds_of, small_cnn

GRID = "segments=grid,cells=49"  # more cells than pixels: each pixel is a segment


def shapley(values: Tensor, players: int) -> Tensor:
    """By definition: `values[b]` is the worth of the coalition whose members are the bits of b."""
    found = torch.zeros(players, dtype=torch.float64)
    for player in range(players):
        others = [other for other in range(players) if other != player]
        for size in range(players):
            weight = factorial(size) * factorial(players - size - 1) / factorial(players)
            for members in combinations(others, size):
                without = sum(1 << member for member in members)
                found[player] += weight * (values[without | 1 << player] - values[without])
    return found


def game(players: int, seed: int = 0) -> Tensor:
    return torch.randn(2**players, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def fitted(values: Tensor, players: int, samples: int, seed: int = 0) -> Tensor:
    """(S,): what the fit makes of a game."""
    chosen = coalitions(torch.tensor([seed]), torch.ones(1, players, dtype=torch.bool), samples)
    codes = (chosen.switches.long() << torch.arange(players)).sum(2)
    return chosen.shapley(values[codes] - values[0], (values[-1] - values[0])[None])[0]


@pytest.mark.parametrize(
    ("worth", "wanted"),
    [
        (lambda z: z[:, 0] + 2 * z[:, 0] * z[:, 1] + 0 * z[:, 2], [2, 1, 0]),
        (lambda z: z[:, 0] * z[:, 1] * z[:, 2] + z[:, 3], [1 / 3, 1 / 3, 1 / 3, 1]),
        (lambda z: 5 + z[:, 0] * z[:, 1], [0.5, 0.5]),
    ],
)
def test_the_games_of_the_sheet(worth, wanted):
    found = explained(model_of(Formula(worth)), flat([1.0] * len(wanted)), f"kernel_shap({GRID})")
    assert found.maps.flatten().tolist() == pytest.approx(wanted, abs=1e-6)
    assert found.residual.abs().max() < 1e-12
    assert found.promised.item() == pytest.approx(sum(wanted))
    assert not any(flag.any() for flag in found.flags.values())


@pytest.mark.parametrize("players", [2, 3, 6])
def test_all_coalitions_give_shapley_values(players):
    values = game(players)
    torch.testing.assert_close(fitted(values, players, 0), shapley(values, players), rtol=0, atol=1e-12)


def test_sampled_coalitions_come_ever_closer():
    """Ten players, 1022 coalitions: fewer samples than that, over five seeds."""
    values = game(10)
    exact = fitted(values, 10, 1022)
    torch.testing.assert_close(exact, shapley(values, 10), rtol=0, atol=1e-12)
    errors = [
        torch.stack([fitted(values, 10, samples, seed) - exact for seed in range(5)]).square().mean().sqrt().item()
        for samples in (60, 240, 1000)
    ]
    assert errors[0] > 1.5 * errors[1] > 2.25 * errors[2]
    assert errors[2] < 0.08
    assert errors[2] > 1e-3  # else they were not sampled


def test_an_additive_game_is_found_from_samples_too():
    """Section 11.3: a linear model, a segment for each of 64 pixels: the weights times the values, less the fill."""
    weights = torch.linspace(-1, 2, 64)
    batch = batch_of(torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(0)))
    model = model_of(Formula(lambda x: x @ weights + 1))
    for fill, start in (("zero", 0), ("white", 1)):
        maps = explain(model, batch, f"kernel_shap(samples=400,{GRID},fill={fill})")
        wanted = (batch.images - start) * weights.view(8, 8)
        torch.testing.assert_close(maps, wanted, rtol=1e-4, atol=1e-5)


def test_samples_are_drawn_as_the_kernel_weighs_them():
    players, samples = 12, 4000
    chosen = coalitions(seeds_of(1), torch.ones(1, players, dtype=torch.bool), samples)
    assert len(chosen.switches) == samples
    assert (chosen.weights == 1).all()
    sizes = chosen.switches.sum(2)[:, 0]
    assert sizes.min() >= 1
    assert sizes.max() <= players - 1
    assert torch.equal(chosen.switches[::2], ~chosen.switches[1::2])
    chances = [1 / (k * (players - k)) for k in range(1, players)]
    counts = torch.bincount(sizes[::2], minlength=players)[1:]
    expected = [samples / 2 * chance / sum(chances) for chance in chances]
    assert stats.chisquare(counts, expected).pvalue > 0.01
    shares = chosen.switches[::2, 0].double().mean(0)  # everyone plays as often as the others
    assert (shares - 0.5).abs().max() < 4 * 0.5 / (samples / 2) ** 0.5


def test_enumerated_coalitions_are_all_there_with_the_kernels_weights():
    chosen = coalitions(seeds_of(1), torch.ones(1, 5, dtype=torch.bool), 0)
    assert len(chosen.switches.unique(dim=0)) == len(chosen.switches) == 30
    for row, weight in zip(chosen.switches[:, 0], chosen.weights[:, 0], strict=True):
        k = int(row.sum())
        assert weight.item() == pytest.approx(4 / (comb(5, k) * k * (5 - k)))


def test_images_with_fewer_segments_are_not_disturbed_by_those_with_more():
    seeds, present = seeds_of(4), torch.arange(14) < torch.tensor([14, 1, 3, 12])[:, None]
    together = coalitions(seeds, present, 0)
    for i, count in enumerate((14, 1, 3, 12)):
        alone = coalitions(seeds[i : i + 1], present[i : i + 1, :count], 0)
        rows = len(alone.switches)
        assert torch.equal(together.switches[:rows, i, :count], alone.switches[:, 0])
        assert torch.equal(together.weights[:rows, i], alone.weights[:, 0])
        assert not together.weights[rows:, i].any()
        assert not together.switches[:, i, count:].any()
        gains, change = game(12)[: len(together.switches), None].expand(-1, 4), torch.arange(4.0, dtype=torch.float64)
        found = together.shapley(gains, change)[i]
        wanted = alone.shapley(gains[:rows, :1], change[i : i + 1])[0]
        torch.testing.assert_close(found[:count], wanted, rtol=0, atol=1e-9)
        assert not found[count:].any()


def test_it_asks_for_2048_copies_and_two_for_each_segment_or_all_there_are():
    for count, passes in ((14, 2048 + 28 + 2), (11, 2048), (3, 8)):
        spy = Spy(Formula(lambda x: x.sum(1)))
        explain(model_of(spy), flat([1.0] * count), f"kernel_shap({GRID})")
        assert sum(spy.sizes) == passes


def test_a_segment_alone_gets_the_whole_change():
    found = explained(model_of(Formula(lambda x: x.sum(1))), batch_of(torch.full((1, 1, 4, 4), 0.5)), "kernel_shap")
    assert found.flags["one_segment"].tolist() == [True]
    assert found.facts["segments"].tolist() == [1]
    torch.testing.assert_close(found.maps, torch.full((1, 1, 4, 4), 8.0))
    assert found.residual.item() == 0


def test_density_spreads_a_segments_value_over_its_pixels():
    model, batch = model_of(small_cnn()), noise_batch()
    value, density = (
        explained(model, batch, f"kernel_shap(samples=100,segments=grid,cells=3,paint={paint})")
        for paint in ("value", "density")
    )
    torch.testing.assert_close(density.maps.double().sum((1, 2, 3)), density.promised, rtol=1e-5, atol=1e-6)
    areas = torch.outer(torch.tensor([3, 3, 2]), torch.tensor([3, 3, 2])).repeat_interleave(torch.tensor([3, 3, 2]), 0)
    areas = areas.repeat_interleave(torch.tensor([3, 3, 2]), 1)
    torch.testing.assert_close(density.maps * areas, value.maps)


def test_it_promises_the_change_in_score():
    model, batch = model_of(small_cnn()), noise_batch()
    found = explained(model, batch, "kernel_shap(samples=40,segments=grid,cells=3)")
    with torch.no_grad():
        change = model.logits(batch.images) - model.logits(0 * batch.images)
    change = change.gather(1, batch.targets[:, None])[:, 0].double()
    torch.testing.assert_close(found.promised, change, rtol=1e-5, atol=1e-6)
    assert found.residual.abs().max() < 1e-12


def test_too_few_samples_are_drawn_again_and_then_said():
    """64 segments need 63 pairs: 10 samples become 40 and still leave the fit open, 40 become 160 and do not."""
    weights = torch.linspace(-1, 2, 64)
    model, batch = model_of(Formula(lambda x: x @ weights)), batch_of(torch.ones(1, 1, 8, 8))
    few, enough = (explained(model, batch, f"kernel_shap(samples={samples},{GRID})") for samples in (10, 40))
    assert few.flags["few_samples"].tolist() == [True]
    assert few.residual.abs().max() < 1e-12
    assert few.maps.isfinite().all()
    assert enough.flags["few_samples"].tolist() == [False]
    torch.testing.assert_close(enough.maps, weights.view(1, 1, 8, 8), rtol=1e-4, atol=1e-5)


def test_a_score_that_never_moves_and_an_image_that_is_its_fill_are_said_and_get_zeros():
    text = "kernel_shap(samples=40,segments=grid,cells=3)"
    still = explained(model_of(Formula(lambda x: 0 * x[:, 0] + 2)), noise_batch(classes=2), text)
    assert still.flags["flat_score"].all()
    assert not still.flags["equal_baseline"].any()
    assert still.maps.abs().max() < 1e-6
    images = noise_batch(2).images
    images[1] = 0
    blank = explained(model_of(small_cnn()), batch_of(images), text)
    assert blank.flags["equal_baseline"].tolist() == [False, True]
    assert blank.maps[1].abs().max() == 0
    assert blank.residual[1] == blank.promised[1] == 0
    assert blank.maps[0].abs().max() > 0


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ("samples=1", ValueError, "kernel_shap: samples=1, wanted 2 or more, or 0 for 2048"),
        ("samples=-5", ValueError, "kernel_shap: samples=-5, wanted"),
        ("segments=squares", LookupError, "there is no segments 'squares'"),
        ("paint=coef", LookupError, "there is no paint 'coef'"),
        ("fill=grey", LookupError, "there is no fill 'grey'"),
        ("output=logits", LookupError, "there is no output 'logits'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s){error.__name__}: {words}"):
        explain(model_of(small_cnn()), noise_batch(), f"kernel_shap({params})")
