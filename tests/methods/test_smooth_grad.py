"""SmoothGrad: its expectations on x^2, exactness on a linear model, and its noise."""

from dataclasses import replace

import pytest
import torch

from saliometer.seeds import normal
from toys import Formula, explain, explained, fixture_l, fixture_s, flat, model_of, noise_batch, power, small_cnn

MANY = 4000


@pytest.mark.parametrize(("squared", "wanted", "spread"), [("false", 2.0, 1.0), ("true", 5.0, 4.24)])
def test_the_expectations_on_a_square(squared, wanted, spread):
    """x^2 at 1 with noise of 0.5: E[2y] = 2, E[4y^2] = 4 (1 + 0.25) = 5; 4000 pixels times 4 draws, 4 deviations."""
    batch = flat([1.0] * MANY)
    maps = explain(model_of(power(2)), batch, f"smooth_grad(draws=4,noise=0.5,scale=absolute,squared={squared})")
    assert maps.double().mean().item() == pytest.approx(wanted, abs=4 * spread / (MANY * 4) ** 0.5)


def test_the_variance_over_draws_is_that_of_the_noise():
    """The slope 2y has variance 4 s^2 = 1; the mean of 16 draws a sixteenth of it."""
    batch = flat([1.0] * MANY)
    maps = explain(model_of(power(2)), batch, "smooth_grad(draws=16,noise=0.5,scale=absolute)")
    assert maps.double().var().item() == pytest.approx(1 / 16, rel=0.1)


def test_it_is_exact_on_a_linear_model():
    model, batch = model_of(fixture_l()), flat([1, 1], [0, 4])
    assert explain(model, batch, "smooth_grad(draws=7)").flatten(1).tolist() == [[3, -2]] * 2
    assert explain(model, batch, "smooth_grad(draws=7,squared=true)").flatten(1).tolist() == [[9, 4]] * 2


def test_without_noise_it_is_the_gradient_and_that_is_no_remark():
    model, batch = model_of(small_cnn()), noise_batch()
    found = explained(model, batch, "smooth_grad(draws=3,noise=0)")
    torch.testing.assert_close(found.maps, explain(model, batch, "gradient"))
    assert not found.flags["no_noise"].any()


def test_noise_is_a_share_of_each_images_own_range():
    """Images of range 1 and 4 in one batch: the slope of x^2 spreads by 2 s."""
    low, high = [0.0, 1.0] * 2000, [0.0, 4.0] * 2000
    batch = flat(low, high)
    maps = explain(model_of(power(2)), batch, "smooth_grad(draws=1,noise=0.1)").flatten(1).double()
    noise = (maps - 2 * batch.images.flatten(1)) / 2
    assert noise[0].std().item() == pytest.approx(0.1, rel=0.05)
    assert noise[1].std().item() == pytest.approx(0.4, rel=0.05)


def test_a_constant_image_gets_no_noise_by_range_but_does_by_absolute_scale():
    batch, model = flat([0.5] * 20, [0.0, 1.0] * 10), model_of(power(2))
    found = explained(model, batch, "smooth_grad(draws=2)")
    assert found.maps[0].flatten().tolist() == [1.0] * 20
    assert found.flags["no_noise"].tolist() == [True, False]
    absolute = explained(model, batch, "smooth_grad(draws=2,scale=absolute)")
    assert absolute.maps[0].std() > 0.05
    assert not absolute.flags["no_noise"].any()


def test_a_model_without_slope_is_flagged():
    found = explained(model_of(fixture_s()), flat([9, 8], [0.1, 0.2]), "smooth_grad(draws=2)")
    assert found.flags["zero_gradient"].tolist() == [True, False]
    assert found.maps[0].abs().sum() == 0


def test_draw_k_uses_the_stream_of_its_number_so_more_draws_keep_the_first():
    batch = flat([1.0, 2.0, 3.0])
    maps = explain(model_of(power(2)), batch, "smooth_grad(draws=2,noise=0.3,scale=absolute)")
    noise = [0.3 * normal(batch.seeds, f"smooth_grad {draw}", like=batch.images) for draw in range(2)]
    wanted = sum(2 * (batch.images + one) for one in noise) / 2
    torch.testing.assert_close(maps, wanted)


def test_the_noisy_image_is_not_clipped():
    """Black pixels get negative noise as well: the mean slope of x^2 at 0 is 0, not positive."""
    batch = flat([0.0] * MANY)
    maps = explain(model_of(power(2)), batch, "smooth_grad(draws=4,noise=0.5,scale=absolute)")
    assert maps.double().mean().item() == pytest.approx(0, abs=4 / (MANY * 4) ** 0.5)


def test_an_images_noise_follows_its_seed():
    batch = flat([1.0, 2.0, 4.0])
    other = replace(batch, seeds=batch.seeds + 1)
    model = model_of(power(3))
    one, two = (explain(model, b, "smooth_grad(draws=2)") for b in (batch, other))
    assert (one != two).all()


def test_a_probability_is_smoothed_when_asked_for():
    """Two scores f and -f make p = sigmoid(2 f): with f = x the slope is 2 p (1 - p) at every noisy copy."""
    batch = flat([0.4])
    maps = explain(
        model_of(Formula(lambda x: x[:, 0])), batch, "smooth_grad(draws=2,noise=0.3,scale=absolute,output=probability)"
    )
    p = [torch.sigmoid(2 * (0.4 + 0.3 * normal(batch.seeds, f"smooth_grad {k}", like=batch.images))) for k in (0, 1)]
    assert maps.item() == pytest.approx(sum(2 * q * (1 - q) for q in p).item() / 2, rel=1e-5)


@pytest.mark.parametrize("params", ["draws=0", "noise=-0.1"])
def test_what_cannot_be_done_is_refused(params):
    words = "smooth_grad: draws=.*, noise=.*; wanted draws of 1 or more, noise of 0 or more"
    with pytest.raises(AssertionError, match=words):
        explain(model_of(fixture_l()), flat([1, 1]), f"smooth_grad({params})")


def test_an_unknown_scale_is_refused():
    with pytest.raises(AssertionError, match=r"LookupError: there is no scale 'rage'. Did you mean 'range'"):
        explain(model_of(fixture_l()), flat([1, 1]), "smooth_grad(scale=rage)")
