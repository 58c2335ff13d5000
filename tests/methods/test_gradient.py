"""Gradient: known slopes, finite differences, probabilities, and Captum's."""

from dataclasses import replace

import pytest
import torch
from captum.attr import Saliency
from torch import nn

from doubles import double, raw, scores, smooth_cnn
from toys import explain, explained, fixture_g, fixture_l, fixture_s, flat, model_of, noise_batch


def test_the_slope_of_a_linear_model_is_its_weights():
    batch = flat([1, 1], [-4, 9], [0, 0])
    assert explain(model_of(fixture_l()), batch, "gradient").flatten(1).tolist() == [[3, -2]] * 3


def test_the_slope_of_fixture_g_is_that_of_its_open_units():
    """At (1, 2) units 1 and 3 are open: (1, 1) - 3 (0, 1); at (2, 1) all are: (1, 1) + 2 (1, -1) - 3 (0, 1)."""
    assert explain(model_of(fixture_g()), flat([1, 2], [2, 1]), "gradient").flatten(1).tolist() == [[1, -2], [3, -4]]


def test_a_saturated_model_has_no_slope_and_says_so():
    found = explained(model_of(fixture_s()), flat([1, 1], [0.2, 0.3]), "gradient")
    assert found.maps.flatten(1).tolist() == [[0, 0], [1, 1]]
    assert found.flags["zero_gradient"].tolist() == [True, False]
    assert found.residual is None


def test_the_other_class_has_its_own_slope():
    other = replace(flat([1, 1]), targets=torch.tensor([1]))
    assert explain(model_of(fixture_l()), other, "gradient").flatten().tolist() == [-3, 2]


def test_the_slope_is_what_finite_differences_say():
    """Double precision, h = 1e-4: central differences are off by h^2."""
    model, batch = smooth_cnn(), double(noise_batch())
    maps = raw(model, batch, "gradient").maps
    assert maps.dtype == torch.float64
    direction = torch.randn(maps.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    step = 1e-4
    ahead, behind = (scores(model, batch.images + sign * step * direction, batch.targets) for sign in (1, -1))
    wanted = (ahead - behind) / (2 * step)
    torch.testing.assert_close((maps * direction).sum((1, 2, 3)), wanted, rtol=1e-6, atol=1e-8)


def test_a_probability_has_the_slope_of_a_softmax():
    """p = sigmoid(2 f) for scores f and -f, so dp/dx = 2 p (1 - p) df/dx."""
    model, batch = model_of(fixture_l()), flat([1, 1], [0.1, 0.5])
    p = torch.sigmoid(2 * (3 * batch.images[..., 0] - 2 * batch.images[..., 1] + 1)).flatten()
    maps = explain(model, batch, "gradient(output=probability)").flatten(1)
    torch.testing.assert_close(maps, (2 * p * (1 - p))[:, None] * torch.tensor([[3.0, -2.0]]))


def test_a_saturated_softmax_keeps_its_slope():
    """methods.md 0.11: at a logit gap of 40 the plain derivative is exactly 0; the true one is 40 e^-40."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(1, 2, bias=False))
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([[40.0], [0.0]]))
    found = explained(model_of(net), flat([1.0]), "gradient(output=probability)")
    assert found.maps.item() == pytest.approx(40 * torch.tensor(-40.0).exp().item(), rel=1e-4)
    assert not found.flags["zero_gradient"].any()


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_parity_with_captum(which, request):
    """Captum 0.9.0, Saliency(abs=False); float32, so equal to 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    maps = explain(model, samples.batch, "gradient")
    images = samples.batch.images.clone().requires_grad_()
    wanted = Saliency(model.net).attribute(images, target=samples.batch.targets, abs=False)
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())


def test_an_unknown_output_is_refused():
    with pytest.raises(AssertionError, match=r"LookupError: there is no output 'logits'. Did you mean 'logit'"):
        explain(model_of(fixture_l()), flat([1, 1]), "gradient(output=logits)")
