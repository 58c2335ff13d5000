"""Integrated gradients with SmoothGrad: its expectation on x^2, its residual, and the mean of plain runs."""

import pytest
import torch
from torch import Tensor

from doubles import double, linear, raw, scores, smooth_cnn
from saliometer.seeds import normal
from saliometer.types import Batch
from toys import explain, explained, fixture_g, fixture_l, fixture_s, flat, model_of, noise_batch, power

MANY = 4000


def copies(batch: Batch, noise: float, draws: int) -> list[Tensor]:
    spread = batch.images.amax((1, 2, 3), keepdim=True) - batch.images.amin((1, 2, 3), keepdim=True)
    noises = [normal(batch.seeds, f"ig_smooth_grad {draw}", like=batch.images) for draw in range(draws)]
    return [batch.images + noise * spread * one for one in noises]


def test_the_expectation_on_a_square():
    """methods.md 3.5: x^2 at 1, s = 0.5: E[y^2] = 1.25, with a deviation of 1.06 (of y^2)."""
    batch = flat([1.0] * MANY)
    maps = explain(model_of(power(2)), batch, "ig_smooth_grad(draws=4,noise=0.5,scale=absolute,steps=3)")
    assert maps.double().mean().item() == pytest.approx(1.25, abs=4 * 1.06 / (4 * MANY) ** 0.5)


@pytest.mark.parametrize("size", [0, 4, 7])
def test_it_is_the_mean_of_integrated_gradients_of_the_noisy_copies(size):
    """Double precision, whatever fits into one pass."""
    model, batch = smooth_cnn(), double(noise_batch())
    found = raw(model, batch, "ig_smooth_grad(draws=3,steps=4,rule=left)", size=size)
    plain = [
        raw(model, Batch(images, batch.targets, batch.seeds), "integrated_gradients(steps=4,rule=left)").maps
        for images in copies(batch, 0.15, 3)
    ]
    torch.testing.assert_close(found.maps, torch.stack(plain).mean(0), rtol=1e-10, atol=1e-14)


def test_it_sums_to_the_mean_score_of_the_noisy_copies_less_that_of_the_baseline():
    model, batch = smooth_cnn(), double(noise_batch())
    found = raw(model, batch, "ig_smooth_grad(draws=3,baseline=white)")
    noisy = torch.stack([scores(model, images, batch.targets) for images in copies(batch, 0.15, 3)])
    wanted = noisy.mean(0) - scores(model, torch.ones_like(batch.images), batch.targets)
    torch.testing.assert_close(found.promised, wanted, rtol=1e-10, atol=1e-12)
    assert found.residual.abs().max() < 1e-10
    assert not found.flags["loose"].any()


def test_a_linear_model_is_shared_out_by_the_mean_noisy_copy():
    batch = double(noise_batch(classes=1))
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = raw(linear(weights), batch, "ig_smooth_grad(draws=4,steps=2)")
    wanted = weights * torch.stack(copies(batch, 0.15, 4)).mean(0)
    torch.testing.assert_close(found.maps, wanted, rtol=1e-10, atol=1e-13)


def test_without_noise_it_is_integrated_gradients():
    model, batch = smooth_cnn(), double(noise_batch())
    found = raw(model, batch, "ig_smooth_grad(draws=2,noise=0,steps=3)")
    torch.testing.assert_close(found.maps, raw(model, batch, "integrated_gradients(steps=3)").maps)
    assert not found.flags["no_noise"].any()


def test_degenerate_images_are_flagged():
    found = explained(model_of(fixture_g()), flat([0, 0], [2, 2], [1, 2]), "ig_smooth_grad(draws=2,steps=3)")
    assert found.flags["equal_baseline"].tolist() == [True, False, False]
    assert found.flags["no_noise"].tolist() == [True, True, False]
    assert found.maps[0].abs().sum() == 0
    assert (found.residual[0].item(), found.promised[0].item()) == (0, 0)
    noisy = explained(model_of(fixture_g()), flat([0, 0]), "ig_smooth_grad(draws=2,steps=3,scale=absolute)")
    assert not noisy.flags["equal_baseline"].any()
    assert noisy.maps.abs().sum() > 0
    saturated = explained(model_of(fixture_s()), flat([9, 8]), "ig_smooth_grad(draws=2,steps=3,baseline=white)")
    assert saturated.flags["zero_gradient"].tolist() == [True]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("draws=0", "ig_smooth_grad: draws=0, noise=0.15; wanted draws of 1 or more, noise of 0 or more"),
        ("steps=0", "ig_smooth_grad: steps=0, wanted 1 or more for rule=gauss_legendre"),
        ("rule=simpson", "there is no rule 'simpson'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        explain(model_of(fixture_l()), flat([1, 1]), f"ig_smooth_grad({params})")
