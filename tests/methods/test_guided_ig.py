"""Guided integrated gradients: known ways, completeness, and the algorithm of methods.md 3.8 retold step by step."""

import math

import numpy as np
import pytest
import torch

from doubles import double, linear, raw, smooth_cnn
from saliometer.types import Model
from toys import Formula, Spy, explain, explained, fixture_l, flat, model_of, noise_batch, small_cnn


def product() -> Model:
    """f = x1 x2 + x2."""
    return model_of(Formula(lambda x: x[:, 0] * x[:, 1] + x[:, 1]))


@pytest.mark.parametrize("steps", [2, 4, 10, 50])
def test_flat_values_go_first(steps):
    """x1 has no slope while x2 is 0, so it goes to its end first, for nothing; the straight way gives (0.5, 1.5)."""
    maps = explain(product(), flat([1, 1]), f"guided_ig(steps={steps},max_dist=1)")
    assert maps.flatten().tolist() == pytest.approx([0, 2], abs=1e-6)
    straight = explain(product(), flat([1, 1]), "integrated_gradients")
    assert straight.flatten().tolist() == pytest.approx([0.5, 1.5], abs=1e-6)


def test_two_values_may_share_a_step_and_its_gradient():
    """Three steps of 2/3: x1 to 2/3; x1 to 1 and x2 to 1/3 at slope 5/3; x2 to 1 at slope 2: 5/9 + 4/3."""
    maps = explain(product(), flat([1, 1]), "guided_ig(steps=3,max_dist=1)")
    assert maps.flatten().tolist() == pytest.approx([0, 17 / 9], abs=1e-6)


@pytest.mark.parametrize("max_dist", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("baseline", ["zero", "white"])
def test_a_linear_model_is_shared_out_exactly(max_dist, baseline):
    batch = double(noise_batch(classes=1))
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = raw(linear(weights), batch, f"guided_ig(steps=9,max_dist={max_dist},baseline={baseline})")
    wanted = weights * (batch.images - float(baseline == "white"))
    torch.testing.assert_close(found.maps, wanted, rtol=1e-12, atol=1e-14)
    assert found.residual.abs().max() < 1e-12


def test_with_no_room_beside_the_line_it_is_integrated_gradients_with_the_left_rule():
    model, batch = smooth_cnn(), double(noise_batch())
    found = raw(model, batch, "guided_ig(steps=12,max_dist=0)").maps
    wanted = raw(model, batch, "integrated_gradients(steps=12,rule=left)").maps
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-15)


def literal(model: Model, image: torch.Tensor, target: int, steps: int, fraction: float, d: float) -> np.ndarray:
    """methods.md 3.8 on one image in plain numpy, in values instead of shares of the way."""
    x, x0 = image.numpy(), np.zeros(image.shape)
    p, a, whole = x0.copy(), np.zeros(image.shape), np.abs(x - x0).sum()
    for k in range(1, steps + 1):
        shown = torch.from_numpy(p)[None].requires_grad_()
        slope = torch.autograd.grad(model.logits(shown)[0, target], shown)[0][0].numpy()
        al = k / steps
        low, high = (x0 + share * (x - x0) for share in (max(al - d, 0.0), min(al + d, 1.0)))
        goal = whole * (1 - al)
        while True:
            before = p.copy()
            lagging = (p - low) * np.sign(x - x0) < 0
            p[lagging] = low[lagging]
            left = np.abs(p - x).sum()
            if math.isclose(left, goal, rel_tol=1e-9, abs_tol=1e-9):
                a += (p - before) * slope
                break
            steep = np.abs(slope)
            steep[np.abs(p - high) < 1e-12] = np.inf
            threshold = np.quantile(steep, fraction, method="lower")
            chosen = (steep <= threshold) & (steep < np.inf)
            room = np.abs(high - p)[chosen].sum()
            gamma = (left - goal) / room if room > 0 else np.inf
            p[chosen] = high[chosen] if gamma > 1 else ((1 - gamma) * p + gamma * high)[chosen]
            a += (p - before) * slope
            if gamma <= 1:
                break
    return a


@pytest.mark.parametrize(("fraction", "max_dist"), [(0.25, 0.02), (0.25, 0.3), (0.1, 1.0), (1.0, 0.1)])
def test_parity_with_the_algorithm_retold(fraction, max_dist):
    model, batch = smooth_cnn(), double(noise_batch(3))
    images = 2 * batch.images - 1  # both signs
    images[0, :, 2] = 0  # and values that are on their baseline
    batch = type(batch)(images, batch.targets, batch.seeds)
    found = raw(model, batch, f"guided_ig(steps=25,fraction={fraction},max_dist={max_dist})")
    for i in range(3):
        wanted = literal(model, images[i], int(batch.targets[i]), 25, fraction, max_dist)
        np.testing.assert_allclose(found.maps[i].numpy(), wanted, rtol=0, atol=1e-9)


def test_it_sums_to_the_change_in_score_of_a_smooth_model_and_takes_one_pass_a_step():
    """A first-order sum: four times the steps, a quarter of the error."""
    net = Spy(smooth_cnn().net)
    batch = double(noise_batch())
    found = raw(model_of(net), batch, "guided_ig")
    assert net.sizes == [10, *[5] * 200]
    assert (found.residual.abs() < 0.005 * found.promised.abs()).all()
    coarse = raw(model_of(net), batch, "guided_ig(steps=50)")
    assert (coarse.residual.abs().mean() / found.residual.abs().mean()).item() == pytest.approx(4, rel=0.2)


def test_a_sum_that_is_off_by_more_than_one_per_cent_is_loose():
    """On a ReLU network the way slides along kinks, where no gradient is right for a whole step."""
    found = explained(model_of(small_cnn()), noise_batch(), "guided_ig(steps=50)")
    wanted = found.residual.abs() > 0.01 * found.promised.abs()
    assert wanted.any()
    assert torch.equal(found.flags["loose"], wanted)


def test_every_value_arrives():
    """The last step is at 1: a model that is linear there from anywhere gives its weights, whatever came before."""
    for fraction in (0.01, 0.25, 1):
        maps = explain(model_of(fixture_l()), flat([5, -7]), f"guided_ig(steps=3,max_dist=1,fraction={fraction})")
        assert maps.flatten().tolist() == pytest.approx([15, 14], rel=1e-6)


def test_a_probability_is_shared_out_when_asked_for():
    found = raw(smooth_cnn(), double(noise_batch()), "guided_ig(output=probability)")
    assert found.promised.abs().max() < 1
    assert (found.residual.abs() < 0.05 * found.promised.abs()).double().mean() >= 0.6


def test_degenerate_images_are_flagged():
    found = explained(product(), flat([0, 0], [1, 1]), "guided_ig(steps=4)")
    assert found.flags["equal_baseline"].tolist() == [True, False]
    assert found.maps[0].abs().sum() == 0
    assert (found.residual[0].item(), found.promised[0].item()) == (0, 0)
    dead = explained(model_of(Formula(lambda x: (x.sum(1) - 100).relu())), flat([1, 2]), "guided_ig(steps=4)")
    assert dead.flags["zero_gradient"].tolist() == [True]
    assert not dead.flags["loose"].any()


@pytest.mark.parametrize("params", ["steps=0", "fraction=0", "fraction=1.5", "max_dist=-0.1"])
def test_what_cannot_be_done_is_refused(params):
    with pytest.raises(
        AssertionError, match=r"ValueError: guided_ig: steps=.*, fraction=.*, max_dist=.*; wanted steps of"
    ):
        explain(model_of(fixture_l()), flat([1, 1]), f"guided_ig({params})")
