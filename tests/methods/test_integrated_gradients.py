"""Integrated gradients: every quadrature rule against methods.md 3.4, completeness, and Captum's."""

from dataclasses import replace

import pytest
import torch
from captum.attr import IntegratedGradients

from doubles import double, linear, raw, scores, smooth_cnn
from saliometer.methods._path import RULES
from saliometer.types import Batch
from toys import (
    Formula,
    Spy,
    explain,
    explained,
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
    "pair": {2: (1, 1.5), 4: (1, 1.1666667)},
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


@pytest.mark.parametrize("rule", RULES)
def test_a_linear_model_is_shared_out_exactly_by_every_rule(rule):
    """Double precision, normalised pixels: w (x - x0) to 1e-14, and the residual too."""
    batch = double(noise_batch(classes=1))
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    model = replace(linear(weights), mean=(0.2, 0.3, 0.4), std=(0.5, 0.6, 0.7))
    for fill, value in (("zero", None), ("black", 0.0), ("white", 1.0)):
        colour = [0.0 if value is None else (value - m) / s for m, s in zip(model.mean, model.std, strict=True)]
        start = torch.tensor(colour, dtype=torch.float64).view(3, 1, 1)
        found = raw(model, batch, f"integrated_gradients(rule={rule},steps=5,baseline={fill})")
        torch.testing.assert_close(found.maps, weights * (batch.images - start), rtol=1e-13, atol=1e-14)
        assert found.residual.abs().max() < 1e-12
        assert not found.flags["loose"].any()


def test_an_image_equal_to_its_baseline_gets_zeros_and_a_flag():
    found = explained(model_of(fixture_g()), flat([0, 0], [1, 2]), "integrated_gradients")
    assert found.maps[0].flatten().tolist() == [0, 0]
    assert found.flags["equal_baseline"].tolist() == [True, False]
    assert found.flags["zero_gradient"].tolist() == [False, False]
    assert (found.residual[0].item(), found.promised[0].item()) == (0, 0)


def test_a_model_that_is_flat_all_along_is_flagged():
    found = explained(model_of(Formula(lambda x: (x.sum(1) - 100).relu())), flat([1, 1]), "integrated_gradients")
    assert found.flags["zero_gradient"].tolist() == [True]
    assert not found.flags["equal_baseline"].any()
    assert not found.flags["loose"].any()


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


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_it_sums_to_the_change_in_score_on_the_shipped_models(which, request):
    """methods.md 0.3: on ReLU nets 50 points leave a median residual below 1 %, and a few per cent in the tail."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    batch = samples.batch
    found = explained(model, batch, "integrated_gradients")
    change = scores(model, batch.images, batch.targets) - scores(model, torch.zeros_like(batch.images), batch.targets)
    torch.testing.assert_close(found.promised, change.double(), rtol=1e-4, atol=1e-5)
    gap = found.maps.double().sum((1, 2, 3)) - found.promised
    torch.testing.assert_close(found.residual, gap, rtol=0, atol=1e-7)
    relative = (gap.abs() / change.abs())[change.abs() > 0.5]
    assert len(relative) >= 8
    assert relative.median() < 0.01
    assert (relative < 0.02).double().mean() > 0.75
    assert torch.equal(found.flags["loose"], gap.abs() > 0.01 * found.promised.abs().clamp(min=1e-6))


def test_it_sums_to_the_change_in_score_of_a_smooth_model():
    smooth = model_of(Formula(lambda x: torch.sigmoid(x.sum(1)) * x[:, 0].exp()))
    batch = flat([0.3, -1.2, 0.8], [1.0, 0.2, -0.7])
    found = explain(smooth, batch, "integrated_gradients").flatten(1).sum(1)
    wanted = smooth.logits(batch.images)[:, 0] - smooth.logits(torch.zeros_like(batch.images))[:, 0]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_probability_is_shared_out_when_asked_for():
    model, batch = smooth_cnn(), double(noise_batch())
    found = raw(model, batch, "integrated_gradients(output=probability)")
    shown = torch.stack((batch.images, torch.zeros_like(batch.images)))
    with torch.no_grad():
        high, low = (model.logits(images).softmax(1).gather(1, batch.targets[:, None])[:, 0] for images in shown)
    torch.testing.assert_close(found.promised, high - low)
    assert found.residual.abs().max() < 1e-10


def test_the_legacy_path_goes_from_the_image_to_twice_as_far():
    """x^2 from 3 to 6: 36 - 9; its left rule with 2 points: 3 (6 + 9) / 2; from white, 3 to 5: 25 - 9."""
    model, batch = model_of(power(2)), flat([3])
    found = explained(model, batch, "integrated_gradients(path=legacy_double)")
    assert found.maps.item() == pytest.approx(27, rel=1e-5)
    assert found.promised.item() == 27
    left = explain(model, batch, "integrated_gradients(path=legacy_double,rule=left,steps=2)")
    assert left.item() == pytest.approx(22.5, rel=1e-6)
    white = explain(model, batch, "integrated_gradients(path=legacy_double,baseline=white)")
    assert white.item() == pytest.approx(16, rel=1e-5)


def kinked() -> Formula:
    """Flat but for the last hundredth of the way to 1: 50 points see none or too much of it."""
    return Formula(lambda x: 100 * (x.sum(1) - 0.99).relu())


def test_adaptive_doubles_the_steps_of_images_that_need_it():
    """From 0 to 1 the step lies in the last 1 %; from 0 to 0.5 nothing happens; to 200 it is no matter."""
    model, batch = model_of(kinked()), flat([1.0], [0.5], [200.0])
    plain = explained(model, batch, "integrated_gradients(rule=middle)")
    assert plain.flags["loose"].tolist() == [True, False, False]
    assert "steps" not in plain.facts
    found = explained(model, batch, "integrated_gradients(rule=middle,adaptive=true)")
    assert found.facts["steps"].tolist() == [100, 50, 50]
    assert not found.flags["loose"].any()
    assert torch.equal(found.maps[1:], plain.maps[1:])
    assert found.maps[0].item() == pytest.approx(1, rel=1e-2)


def test_adaptive_stops_at_400_and_says_that_it_is_loose():
    """A jump cannot be integrated: its slope is 0 wherever one looks."""
    jump = model_of(Formula(lambda x: x.sum(1).round() + 0 * x.sum(1)))
    net = Spy(jump.net)
    found = explained(model_of(net), flat([1.0]), "integrated_gradients(adaptive=true)")
    assert found.facts["steps"].tolist() == [400]
    assert found.flags["loose"].tolist() == [True]
    assert sum(net.sizes) == 2 + 50 + 100 + 200 + 400


def test_adaptive_leaves_an_image_alone_in_a_batch():
    net, batch = small_cnn(), noise_batch()
    batch = replace(batch, images=2 * batch.images - 1)
    text = "integrated_gradients(steps=6,rule=left,adaptive=true)"
    together = explained(model_of(net), batch, text)
    alone = [explained(model_of(net), batch[i : i + 1], text) for i in range(5)]
    assert len(set(together.facts["steps"].tolist())) > 1
    assert together.facts["steps"].tolist() == [one.facts["steps"].item() for one in alone]
    torch.testing.assert_close(together.maps, torch.cat([one.maps for one in alone]))


def test_the_mean_of_the_references_is_a_baseline():
    model, batch = model_of(power(2)), flat([3])
    batch = Batch(batch.images, batch.targets, batch.seeds, torch.tensor([0.0, 4.0]).view(2, 1, 1, 1))
    assert explain(model, batch, "integrated_gradients(baseline=mean)").item() == pytest.approx(9 - 4, rel=1e-5)


@pytest.mark.parametrize("baseline", ["blur", "uniform"])
def test_other_baselines_are_summed_up_to_as_well(baseline):
    found = raw(smooth_cnn(), double(noise_batch()), f"integrated_gradients(baseline={baseline})")
    assert found.promised.abs().min() > 1e-3
    assert found.residual.abs().max() < 1e-10


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
        ("steps=0", ValueError, "integrated_gradients: steps=0, wanted 1 or more for rule=gauss_legendre"),
        ("rule=trapezoid,steps=1", ValueError, "integrated_gradients: steps=1, wanted 2 or more for rule=trapezoid"),
        ("rule=pair,steps=1", ValueError, "integrated_gradients: steps=1, wanted 2 or more for rule=pair"),
        ("rule=middel", LookupError, "there is no rule 'middel'. Did you mean 'middle'?"),
        ("baseline=blurr", LookupError, "there is no fill 'blurr'."),
        ("baseline=mean", ValueError, "fill=mean"),
        ("path=double", LookupError, "there is no path 'double'."),
        ("output=logits", LookupError, "there is no output 'logits'."),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s)Traceback.*{error.__name__}: {words}"):
        explain(model_of(fixture_l()), flat([1, 1]), f"integrated_gradients({params})")
