"""VarGrad: its expectation on x^2, zero on a linear model, numpy's variance of the same draws."""

import numpy as np
import pytest
import torch

from doubles import double, raw, smooth_cnn
from saliometer.seeds import normal
from toys import explain, explained, fixture_l, fixture_s, flat, model_of, noise_batch, power

MANY = 4000


def test_the_expectation_on_a_square():
    """x^2 at 1 with noise of 0.5: the slope 2y has variance 4 s^2 = 1, of which n draws show (n-1)/n."""
    for draws in (2, 8):
        batch = flat([1.0] * MANY)
        maps = explain(model_of(power(2)), batch, f"var_grad(draws={draws},noise=0.5,scale=absolute)").double()
        spread = (2 / (draws - 1)) ** 0.5  # of a sample variance, relative
        assert maps.mean().item() == pytest.approx((draws - 1) / draws, rel=4 * spread / MANY**0.5)


def test_it_is_exactly_zero_on_a_linear_model_and_with_one_draw():
    found = explained(model_of(fixture_l()), flat([1, 1]), "var_grad(draws=7)")
    assert found.maps.flatten().tolist() == [0, 0]
    assert not found.flags["zero_gradient"].any()  # the slope is (3, -2): it only does not vary
    assert explain(model_of(power(2)), flat([1, 3]), "var_grad(draws=1)").flatten().tolist() == [0, 0]


@pytest.mark.parametrize("size", [0, 7])
def test_it_is_numpys_variance_of_the_gradients_that_smooth_grad_averages(size):
    """Double precision, the same draws: population variance to 1e-12 of the largest."""
    model, batch = smooth_cnn(), double(noise_batch())
    spread = batch.images.amax((1, 2, 3), keepdim=True) - batch.images.amin((1, 2, 3), keepdim=True)
    slopes = []
    for draw in range(6):
        noisy = batch.images + 0.15 * spread * normal(batch.seeds, f"smooth_grad {draw}", like=batch.images)
        noisy.requires_grad_()
        score = model.logits(noisy).gather(1, batch.targets[:, None]).sum()
        slopes.append(torch.autograd.grad(score, noisy)[0].numpy())
    maps = raw(model, batch, "var_grad(draws=6)", size=size).maps.numpy()
    np.testing.assert_allclose(maps, np.var(slopes, axis=0), rtol=0, atol=1e-12 * maps.max())
    mean = raw(model, batch, "smooth_grad(draws=6)").maps.numpy()
    np.testing.assert_allclose(mean, np.mean(slopes, axis=0), rtol=0, atol=1e-12 * np.abs(mean).max())


def test_it_is_never_negative_where_slopes_are_large_and_noise_is_small():
    """E[g^2] - E[g]^2 in float32 would be: slopes of 1000 that differ by 0.01."""
    maps = explain(model_of(power(2)), flat([500.0] * 50, [499.0] * 50), "var_grad(draws=5,noise=0.005,scale=absolute)")
    assert maps.min() >= 0
    assert maps.max() < 1e-2


def test_degenerate_images_are_flagged():
    constant = explained(model_of(power(2)), flat([0.5] * 4, [0, 1, 0, 1]), "var_grad(draws=3)")
    assert constant.maps[0].abs().sum() == 0
    assert constant.flags["no_noise"].tolist() == [True, False]
    assert not constant.flags["zero_gradient"].any()
    saturated = explained(model_of(fixture_s()), flat([9, 8]), "var_grad(draws=3)")
    assert saturated.flags["zero_gradient"].tolist() == [True]


def test_what_cannot_be_done_is_refused():
    with pytest.raises(AssertionError, match=r"var_grad: draws=0, noise=0.15; wanted draws of 1 or more"):
        explain(model_of(fixture_l()), flat([1, 1]), "var_grad(draws=0)")
