"""Input times gradient: known products, what it sums to, and Captum's."""

import pytest
import torch
from captum.attr import InputXGradient

from toys import explain, fixture_g, fixture_l, flat, model_of, noise_batch, small_cnn


def test_it_is_the_input_times_the_slope():
    maps = explain(model_of(fixture_l()), flat([1, 1], [2, -5]), "input_x_gradient")
    assert maps.flatten(1).tolist() == [[3, -2], [6, 10]]


def test_fixture_g_is_shared_out_in_full_for_it_has_no_bias():
    maps = explain(model_of(fixture_g()), flat([1, 2]), "input_x_gradient")
    assert maps.flatten().tolist() == [1, -4]
    assert maps.sum() == -3  # its score


def test_it_sums_to_the_score_of_a_network_without_biases():
    net, batch = small_cnn(bias=False), noise_batch()
    maps = explain(model_of(net), batch, "input_x_gradient")
    torch.testing.assert_close(maps.sum((1, 2, 3)), net(batch.images).gather(1, batch.targets[:, None])[:, 0])


def test_it_misses_the_score_by_the_share_of_the_biases():
    """f = sum(a) + sum over all biases of b df/db."""
    net, batch = small_cnn(), noise_batch()
    maps = explain(model_of(net), batch, "input_x_gradient")
    net.requires_grad_(True)
    for i in range(len(batch)):
        net.zero_grad()
        score = net(batch.images[i : i + 1])[0, batch.targets[i]]
        score.backward()
        share = sum((value * value.grad).sum() for name, value in net.named_parameters() if name.endswith("bias"))
        torch.testing.assert_close(maps[i].sum() + share, score.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_parity_with_captum(which, request):
    """Captum 0.9.0; float32, so equal to 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    maps = explain(model, samples.batch, "input_x_gradient")
    images = samples.batch.images.clone().requires_grad_()
    wanted = InputXGradient(model.net).attribute(images, target=samples.batch.targets).detach()
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())
