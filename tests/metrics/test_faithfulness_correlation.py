"""Faithfulness correlation: exact on a linear model, chance for noise, invariances, and where it is undefined."""

import pytest
import torch

from battery_toys import all_costs, judged, value
from linear_toys import linear, one, pictures, some, weights
from saliometer.metrics.faithfulness_correlation import chosen
from toys import explain, model_of, small_cnn

SHAPE = 3, 16, 16
W = weights(SHAPE)
SAMPLES = pictures(6, SHAPE)
EXACT = SAMPLES.batch.images * W


def correlation(maps, samples=SAMPLES, model=None, text="faithfulness_correlation", **given):
    return value(text, model or linear(W), maps, samples, **given)


def test_contributions_of_a_linear_model():
    for maps, wanted in ((EXACT, 1), (-EXACT, -1), (2 * EXACT + 5, 1), (EXACT.sum(1), 1)):
        assert correlation(maps).tolist() == pytest.approx([wanted] * 6, abs=1e-4)


def test_black_is_black_whatever_the_models_scale():
    scale = {"mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.3)}
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in scale.values())
    samples = pictures(6, SHAPE)
    samples.batch.images.sub_(mean).div_(std)
    maps = (samples.batch.images * std + mean) / std * W  # w . (x - black)
    assert correlation(maps, samples, linear(W, **scale)).tolist() == pytest.approx([1] * 6, abs=1e-4)


def test_the_mean_colour_on_demand():
    maps = (SAMPLES.batch.images - SAMPLES.batch.images.mean((2, 3), keepdim=True)) * W
    text = "faithfulness_correlation(fill=mean_colour)"
    assert correlation(maps, text=text).tolist() == pytest.approx([1] * 6, abs=1e-4)
    assert (correlation(maps) < 0.99).all()


def test_a_shift_and_a_positive_factor_are_nothing_to_it():
    maps = some(6, *SHAPE)
    for factor, shift in ((3.0, 0.0), (1e-3, 7.0), (100.0, -2.0)):
        torch.testing.assert_close(correlation(maps), correlation(factor * maps + shift), rtol=0, atol=1e-3)


def test_noise_scores_chance():
    samples = pictures(120, (1, 64, 64))
    found = correlation(some(120, 1, 64, 64), samples, linear(weights((1, 64, 64))))
    assert abs(found.mean().item()) < 0.03
    assert found.std().item() == pytest.approx(99**-0.5, rel=0.2)


def test_sets_are_one_pixel_in_224():
    assert chosen(pictures(2, (1, 8, 8)), 5).shape == (5, 2, 1)
    assert chosen(pictures(2, (1, 32, 32)), 5).shape == (5, 2, 5)
    assert chosen(pictures(2, (1, 64, 64)), 5).shape == (5, 2, 18)
    sets = chosen(pictures(1, (1, 224, 224)), 5)
    assert sets.shape == (5, 1, 224)
    assert all(len(set(places)) == 224 for places in sets[:, 0].tolist())
    counts = torch.bincount(chosen(pictures(40, (1, 8, 8)), 100).flatten(), minlength=64)
    assert counts.min() > 30  # 62.5 expected
    assert counts.max() < 100


def test_all_channels_of_a_pixel_go_and_the_spread_is_that_of_the_score():
    values, _, cost = judged("faithfulness_correlation(runs=30)", linear(W), EXACT, SAMPLES)
    sets = chosen(SAMPLES, 30)
    falls = EXACT.sum(1).flatten(1).expand(30, -1, -1).gather(2, sets).sum(2).double()
    wanted = falls.std(0, correction=0)
    torch.testing.assert_close(values["faithfulness_correlation.spread"], wanted, rtol=1e-3, atol=1e-4)
    assert cost.passes == 31 * 6


def test_maps_without_spread_are_invalid():
    for maps in (torch.zeros(6, 16, 16), torch.full((6, 16, 16), 0.3)):
        values, notes, _ = judged("faithfulness_correlation", linear(W), maps, SAMPLES)
        assert values["faithfulness_correlation"].isnan().all()
        assert "sums are all alike" in notes[0]


def test_a_single_pixel_counts_only_where_it_is_drawn():
    samples = pictures(200, (1, 16, 16))
    maps = torch.zeros(200, 16, 16)
    maps[:, 0, 0] = 1
    hit = (chosen(samples, 100) == 0).flatten(2).any(2).any(0)
    found = correlation(maps, samples, linear(weights((1, 16, 16))))
    assert torch.equal(found.isfinite(), hit)
    assert hit.float().mean().item() == pytest.approx(1 - (1 - 1 / 256) ** 100, abs=0.1)  # 0.32; 0.36 at 224 px


def test_a_score_that_does_not_move_is_invalid():
    values, notes, _ = judged("faithfulness_correlation", linear(torch.zeros_like(W)), EXACT, SAMPLES)
    assert values["faithfulness_correlation"].isnan().all()
    assert "score does not move" in notes[0]


def test_the_same_sets_alone_in_any_batch_and_for_every_method():
    samples, model = pictures(4), model_of(small_cnn())
    maps = explain(model, samples.batch, "gradient")
    together = correlation(maps, samples, model)
    torch.testing.assert_close(together, correlation(maps, samples, model, size=3), rtol=0, atol=1e-4)
    alone = [correlation(maps[i : i + 1], one(samples, i), model) for i in range(4)]
    torch.testing.assert_close(together, torch.cat(alone), rtol=0, atol=1e-4)


def test_the_passes_are_shared_by_all_methods_of_a_chunk():
    texts = ["faithfulness_correlation", "infidelity(draws=4)", "completeness"]
    costs = all_costs(texts, linear(W), EXACT, SAMPLES)
    assert [cost.passes for cost in costs] == [101 * 6, 4 * 6, 6]  # f(x) was asked before


def test_probabilities_on_demand():
    text = "faithfulness_correlation(output=probability)"
    assert (correlation(EXACT, model=linear(0.01 * W), text=text) > 0.99).all()


def test_bad_parameters_are_told():
    for params, words in (("runs=1", "wanted 2 or more"), ("fill=grey", "no fill 'grey'"), ("output=x", "no output")):
        with pytest.raises(AssertionError, match=words):
            correlation(EXACT, text=f"faithfulness_correlation({params})")
