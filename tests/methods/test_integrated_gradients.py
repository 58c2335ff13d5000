"""Integrated gradients: every quadrature rule against methods.md 3.4, completeness, and Captum's."""

import pytest
import torch
from captum.attr import IntegratedGradients

from saliometer.methods.integrated_gradients import RULES
from saliometer.types import Model, Samples
from toys import (
    Formula,
    explain,
    fixture_g,
    fixture_l,
    fixture_s,
    flat,
    model_of,
    noise_batch,
    power,
    small_cnn,
)

# rule -> attribution of x^2 and x^3 at 1 with 2 and with 4 points (true value 1)
TABLE = {
    "gauss_legendre": {2: (1, 1), 4: (1, 1)},
    "middle": {2: (1, 0.9375), 4: (1, 0.984375)},
    "left": {2: (0.5, 0.375), 4: (0.75, 0.65625)},
    "right": {2: (1.5, 1.875), 4: (1.25, 1.40625)},
    "trapezoid": {2: (1, 1.5), 4: (1, 1.0555556)},
}


@pytest.mark.parametrize("rule", TABLE)
@pytest.mark.parametrize("steps", [2, 4])
def test_the_quadrature_gives_the_numbers_of_the_table(rule, steps):
    found = [
        explain(model_of(power(exponent)), flat([1]), f"integrated_gradients(rule={rule},steps={steps})").item()
        for exponent in (2, 3)
    ]
    assert found == pytest.approx(TABLE[rule][steps], abs=1e-6)


def test_the_table_covers_every_rule():
    assert set(TABLE) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_gives_the_weights_of_a_linear_model_times_the_input(rule):
    for steps in (2, 5):
        maps = explain(model_of(fixture_l()), flat([1, 1]), f"integrated_gradients(rule={rule},steps={steps})")
        assert maps.flatten().tolist() == pytest.approx([3, -2], abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("steps", [2, 3, 50])
def test_weights_sum_to_one_and_points_lie_on_the_way(rule, steps):
    places, weights = RULES[rule](steps)
    assert len(places) == len(weights) == steps
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    assert 0 <= min(places) < max(places) <= 1


def test_a_product_is_shared_equally():
    product = model_of(Formula(lambda x: x[:, 0] * x[:, 1]))
    assert explain(product, flat([2, 3]), "integrated_gradients").flatten().tolist() == pytest.approx([3, 3], abs=1e-5)
    left = explain(product, flat([2, 3]), "integrated_gradients(rule=left,steps=4)")
    assert left.flatten().tolist() == pytest.approx([2.25, 2.25], abs=1e-6)


def test_a_saturated_model_is_explained_by_its_way_there():
    """Fixture S: the slope is 1 for both pixels up to the middle of the way, then 0."""
    maps = explain(model_of(fixture_s()), flat([1, 1]), "integrated_gradients(rule=middle,steps=50)")
    assert maps.flatten().tolist() == pytest.approx([0.5, 0.5], abs=1e-6)


def test_another_baseline_is_another_start():
    """x^2 from white (1) to 3: 9 - 1; from zero: 9."""
    for baseline, wanted in (("zero", 9), ("white", 8), ("black", 9)):
        maps = explain(model_of(power(2)), flat([3]), f"integrated_gradients(baseline={baseline})")
        assert maps.item() == pytest.approx(wanted, rel=1e-5)


def test_an_image_equal_to_its_baseline_gets_zeros():
    assert explain(model_of(fixture_g()), flat([0, 0]), "integrated_gradients").flatten().tolist() == [0, 0]


@pytest.mark.parametrize("rule", ["gauss_legendre", "middle", "right"])
def test_it_is_input_times_gradient_on_a_network_without_biases(rule):
    """The slope is the same all along a ray from 0, except at 0 itself."""
    model, batch = model_of(small_cnn(bias=False)), noise_batch()
    maps = explain(model, batch, f"integrated_gradients(rule={rule},steps=5)")
    torch.testing.assert_close(maps, explain(model, batch, "input_x_gradient"), rtol=1e-4, atol=1e-6)


def test_the_left_rule_is_short_by_one_step_there():
    """methods.md 3.4: the gradient at the origin is 0, so 4 points give 3/4."""
    model, batch = model_of(small_cnn(bias=False)), noise_batch()
    maps = explain(model, batch, "integrated_gradients(rule=left,steps=4)")
    torch.testing.assert_close(maps, 0.75 * explain(model, batch, "input_x_gradient"), rtol=1e-4, atol=1e-6)


def residuals(model: Model, samples: Samples, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    """(N,) each: how far the sum is from the change in score, and that change."""
    maps = explain(model, samples.batch, text).double()
    with torch.no_grad():
        change = model.logits(samples.batch.images) - model.logits(torch.zeros_like(samples.batch.images))
    change = change.gather(1, samples.batch.targets[:, None])[:, 0].double()
    return (maps.sum((1, 2, 3)) - change).abs(), change.abs()


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_it_sums_to_the_change_in_score_on_the_shipped_models(which, request):
    """methods.md 0.3: on ReLU nets 50 points leave a median residual below 1 %, and a few per cent in the tail."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    gap, change = residuals(model, samples, "integrated_gradients")
    relative = gap[change > 0.5] / change[change > 0.5]
    assert len(relative) >= 8
    assert relative.median() < 0.01
    assert (relative < 0.02).double().mean() > 0.75
    assert gap[change == 0].sum() < 1e-6


def test_it_sums_to_the_change_in_score_of_a_smooth_model():
    smooth = model_of(Formula(lambda x: torch.sigmoid(x.sum(1)) * x[:, 0].exp()))
    batch = flat([0.3, -1.2, 0.8], [1.0, 0.2, -0.7])
    found = explain(smooth, batch, "integrated_gradients").flatten(1).sum(1)
    wanted = smooth.logits(batch.images)[:, 0] - smooth.logits(torch.zeros_like(batch.images))[:, 0]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


CAPTUM = {
    "gauss_legendre": "gausslegendre",
    "left": "riemann_left",
    "right": "riemann_right",
    "middle": "riemann_middle",
}


@pytest.mark.parametrize("which", ["simple", "complex"])
@pytest.mark.parametrize("rule", CAPTUM)
def test_parity_with_captum(which, rule, request):
    """Captum 0.9.0, 8 points, zero baseline; float32 sums of 8 terms, so equal to 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    batch = samples.batch[4:10]
    maps = explain(model, batch, f"integrated_gradients(rule={rule},steps=8)")
    wanted = IntegratedGradients(model.net).attribute(
        batch.images, baselines=0.0, target=batch.targets, n_steps=8, method=CAPTUM[rule]
    )
    torch.testing.assert_close(maps, wanted.float(), rtol=0, atol=1e-5 * wanted.abs().max().item())


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ("steps=0", ValueError, "integrated_gradients: steps=0, wanted 1 or more"),
        ("rule=trapezoid,steps=1", ValueError, "integrated_gradients: rule=trapezoid needs steps of 2 or more, got 1"),
        ("rule=middel", LookupError, "there is no rule 'middel'. Did you mean 'middle'?"),
        ("baseline=blur", LookupError, "there is no fill 'blur'."),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s)Traceback.*{error.__name__}: {words}"):
        explain(model_of(fixture_l()), flat([1, 1]), f"integrated_gradients({params})")
