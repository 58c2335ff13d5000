"""Gradient: known slopes, finite differences, and Captum's."""

import pytest
import torch
from captum.attr import Saliency

from saliometer.types import Batch
from toys import explain, fixture_g, fixture_l, fixture_s, flat, model_of, noise_batch, small_cnn


def test_the_slope_of_a_linear_model_is_its_weights():
    batch = flat([1, 1], [-4, 9], [0, 0])
    assert explain(model_of(fixture_l()), batch, "gradient").flatten(1).tolist() == [[3, -2]] * 3


def test_the_slope_of_fixture_g_is_that_of_its_open_units():
    """At (1, 2) units 1 and 3 are open: (1, 1) - 3 (0, 1); at (2, 1) all are: (1, 1) + 2 (1, -1) - 3 (0, 1)."""
    assert explain(model_of(fixture_g()), flat([1, 2], [2, 1]), "gradient").flatten(1).tolist() == [[1, -2], [3, -4]]


def test_a_saturated_model_has_no_slope():
    assert explain(model_of(fixture_s()), flat([1, 1]), "gradient").flatten().tolist() == [0, 0]


def test_the_other_class_has_its_own_slope():
    batch = flat([1, 1])
    other = Batch(batch.images, torch.tensor([1]), batch.seeds)
    assert explain(model_of(fixture_l()), other, "gradient").flatten().tolist() == [-3, 2]


def test_the_slope_is_what_finite_differences_say():
    net, batch = small_cnn().double(), noise_batch()
    images = batch.images.double()
    maps = explain(model_of(net), Batch(images, batch.targets, batch.seeds), "gradient").double()
    direction = torch.randn(images.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)

    def score(images):
        return net(images).gather(1, batch.targets[:, None])[:, 0]

    step = 1e-5
    wanted = (score(images + step * direction) - score(images - step * direction)) / (2 * step)
    torch.testing.assert_close((maps * direction).sum((1, 2, 3)), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_parity_with_captum(which, request):
    """Captum 0.9.0, Saliency(abs=False); float32, so equal to 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    maps = explain(model, samples.batch, "gradient")
    images = samples.batch.images.clone().requires_grad_()
    wanted = Saliency(model.net).attribute(images, target=samples.batch.targets, abs=False)
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())
