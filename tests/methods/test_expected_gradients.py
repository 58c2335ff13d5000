"""Expected gradients: exact means on linear models, its expectation on x^2, its error bars, and Captum's."""

from dataclasses import replace

import pytest
import torch
from captum.attr import GradientShap
from torch import Tensor

from doubles import double, linear, raw, scores, smooth_cnn
from saliometer.types import Batch
from toys import Formula, Spy, explain, explained, fixture_l, flat, model_of, noise_batch, power


def among(batch: Batch, *references: list[float]) -> Batch:
    """A flat batch with references of the same shape."""
    return replace(batch, references=torch.tensor(references).view(len(references), 1, 1, -1))


def noise(count: int = 5, references: int = 4) -> Batch:
    images = torch.rand(references, 3, 8, 8, generator=torch.Generator().manual_seed(7))
    return double(replace(noise_batch(count), references=images))


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_linear_model_is_shared_out_exactly_when_every_reference_has_its_turn(rounds):
    """methods.md 3.6: w (x - mean r), for draws a multiple of the references."""
    batch = replace(noise(), targets=torch.zeros(5, dtype=torch.int64))
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = raw(linear(weights), batch, f"expected_gradients(draws={4 * rounds})")
    torch.testing.assert_close(found.maps, weights * (batch.images - batch.references.mean(0)), rtol=1e-10, atol=1e-13)
    assert found.residual.abs().max() < 1e-12
    assert found.facts["standard_error"].max() < 1e-12


def test_the_expectation_on_a_square():
    """x^2 at 2, references 0 and 1: (4 + 3) / 2 = 3.5; by chance alone 200 draws would be off by 0.16."""
    batch = double(among(flat(*[[2.0]] * 50), [0.0], [1.0]))
    found = raw(model_of(power(2)), batch, "expected_gradients")
    assert found.promised.tolist() == [3.5] * 50
    assert found.residual.abs().max() > 0
    assert found.residual.std().item() == pytest.approx(0.06, rel=0.3)
    assert found.maps.mean().item() == pytest.approx(3.5, abs=4 * 0.06 / 50**0.5)
    assert "loose" not in found.flags


def test_points_are_spread_evenly_over_the_way():
    """With one reference at 0 and x = 1 the points are those that the model sees: one in each hundredth."""
    seen: list[Tensor] = []

    def square(x: Tensor) -> Tensor:
        seen.append(x.detach().flatten())
        return x.sum(1) ** 2

    batch = among(flat([1.0]), [0.0])
    explain(model_of(Formula(square)), batch, "expected_gradients(draws=100)")
    places = torch.cat(seen)[:100]
    assert (places * 100).long().sort().values.tolist() == list(range(100))
    assert places.tolist() != sorted(places.tolist())


@pytest.mark.parametrize("draws", [3, 4, 10])
def test_every_reference_has_its_turn_as_often_as_the_others_up_to_one(draws):
    """A sum of r in powers of a thousand counts who came: w (x - r) with w = -1 and x = 0."""
    references = [[1.0], [1000.0], [1e6], [1e9]]
    batch = double(among(flat([0.0], [0.0], [0.0]), *references))
    model = linear(-torch.ones(1, dtype=torch.float64))
    counted = (raw(model, batch, f"expected_gradients(draws={draws})").maps.flatten() * draws).round().long()
    counts = torch.stack([counted // 1000**k % 1000 for k in range(4)], 1)
    assert counts.sum(1).tolist() == [draws] * 3
    assert (counts.amax(1) - counts.amin(1)).max() <= 1
    if draws % 4:
        assert len(set(map(tuple, counts.tolist()))) > 1  # each image goes round in an order of its own


def test_what_is_promised_is_the_score_less_the_mean_of_the_references():
    model, batch = smooth_cnn(), noise()
    found = raw(model, batch, "expected_gradients(draws=8)")
    low = torch.stack([scores(model, one.expand_as(batch.images), batch.targets) for one in batch.references]).mean(0)
    torch.testing.assert_close(found.promised, scores(model, batch.images, batch.targets) - low)
    torch.testing.assert_close(found.residual, found.maps.sum((1, 2, 3)) - found.promised)


def test_a_probability_is_promised_where_it_is_explained():
    model, batch = smooth_cnn(), noise()
    found = raw(model, batch, "expected_gradients(draws=200,output=probability)")
    with torch.no_grad():
        low = model.logits(batch.references).softmax(1).mean(0)[batch.targets]
        high = model.logits(batch.images).softmax(1).gather(1, batch.targets[:, None])[:, 0]
    torch.testing.assert_close(found.promised, high - low)
    assert (found.residual.abs() < 4 * found.facts["standard_error"]).all()


def test_the_residual_is_within_its_error_bars_which_shrink_with_more_draws():
    model, batch = smooth_cnn(), noise(count=20)
    few, many = (raw(model, batch, f"expected_gradients(draws={draws})") for draws in (20, 320))
    for found in (few, many):
        assert (found.residual.abs() < 3 * found.facts["standard_error"]).double().mean() >= 0.9
        assert found.facts["standard_error"].min() > 0
    ratio = few.facts["standard_error"].mean() / many.facts["standard_error"].mean()
    assert ratio.item() == pytest.approx(4, rel=0.25)


def test_references_are_scored_once_each():
    net = Spy(smooth_cnn().net)
    batch = noise()
    raw(model_of(net), batch, "expected_gradients(draws=8)")
    assert sum(net.sizes) == 5 * 8 + 5 + 4


def test_parity_with_captum():
    """Captum 0.9.0 GradientShap draws points and references by chance: 4000 of them, so only the means agree."""
    model, batch = smooth_cnn(), noise(count=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        wanted = GradientShap(model.net).attribute(
            batch.images, batch.references, n_samples=4000, stdevs=0.0, target=batch.targets
        )
    maps = raw(model, batch, "expected_gradients(draws=800)").maps
    assert (maps - wanted).abs().max() < 0.05 * wanted.abs().max()


def test_an_image_that_is_every_reference_gets_zeros_and_a_flag():
    batch = among(flat([1.0, 2.0], [1.0, 3.0]), [1.0, 2.0], [1.0, 2.0])
    found = explained(model_of(power(2)), batch, "expected_gradients(draws=4)")
    assert found.flags["equal_baseline"].tolist() == [True, False]
    assert found.maps[0].abs().sum() == 0
    assert (found.residual[0].item(), found.promised[0].item()) == (0, 0)


def test_a_model_without_slope_is_flagged():
    dead = model_of(Formula(lambda x: (x.sum(1) - 100).relu()))
    found = explained(dead, among(flat([1.0, 2.0]), [0.0, 0.0]), "expected_gradients(draws=4)")
    assert found.flags["zero_gradient"].tolist() == [True]


def test_what_cannot_be_done_is_refused():
    model, batch = model_of(fixture_l()), flat([1, 1])
    with pytest.raises(
        AssertionError, match=r"ValueError: expected_gradients compares with other images .* given none"
    ):
        explain(model, batch, "expected_gradients")
    with pytest.raises(AssertionError, match=r"references have shape \(1, 1, 1, 3\), wanted \(R, 1, 1, 2\)"):
        explain(model, among(batch, [1.0, 2.0, 3.0]), "expected_gradients")
    with pytest.raises(AssertionError, match="ValueError: expected_gradients: draws=0, wanted 1 or more"):
        explain(model, among(batch, [0.0, 0.0]), "expected_gradients(draws=0)")
