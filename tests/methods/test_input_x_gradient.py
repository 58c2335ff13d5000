"""Input times gradient: known products, what it sums to, and Captum's."""

import pytest
import torch
from captum.attr import InputXGradient

from doubles import double, raw
from toys import explain, explained, fixture_g, fixture_l, fixture_s, flat, model_of, noise_batch, small_cnn


def test_it_is_the_input_times_the_slope():
    maps = explain(model_of(fixture_l()), flat([1, 1], [2, -5]), "input_x_gradient")
    assert maps.flatten(1).tolist() == [[3, -2], [6, 10]]


def test_fixture_l_misses_its_score_by_its_bias():
    """methods.md 3.2: sum 1, f = 2, bias share 1."""
    found = explained(model_of(fixture_l()), flat([1, 1]), "input_x_gradient")
    assert (found.promised.item(), found.residual.item()) == (2, -1)
    assert found.residual.dtype == found.promised.dtype == torch.float64
    assert "loose" not in found.flags


def test_fixture_g_is_shared_out_in_full_for_it_has_no_bias():
    found = explained(model_of(fixture_g()), flat([1, 2]), "input_x_gradient")
    assert found.maps.flatten().tolist() == [1, -4]
    assert (found.promised.item(), found.residual.item()) == (-3, 0)


def test_a_saturated_model_gives_zeros_and_says_so():
    found = explained(model_of(fixture_s()), flat([1, 1]), "input_x_gradient")
    assert found.maps.abs().sum() == 0
    assert found.flags["zero_gradient"].tolist() == [True]
    assert (found.promised.item(), found.residual.item()) == (1, -1)


def test_it_sums_to_the_score_of_a_network_without_biases():
    net, batch = small_cnn(bias=False).double(), double(noise_batch())
    found = raw(model_of(net), batch, "input_x_gradient")
    wanted = net(batch.images).gather(1, batch.targets[:, None])[:, 0]
    torch.testing.assert_close(found.maps.sum((1, 2, 3)), wanted, rtol=1e-12, atol=1e-14)
    assert found.residual.abs().max() < 1e-14


def test_its_residual_is_the_share_of_the_biases():
    """f = sum(a) + sum over all biases of b df/db."""
    net, batch = small_cnn().double(), double(noise_batch())
    found = raw(model_of(net), batch, "input_x_gradient")
    net.requires_grad_(True)
    for i in range(len(batch)):
        net.zero_grad()
        net(batch.images[i : i + 1])[0, batch.targets[i]].backward()
        share = sum((value * value.grad).sum() for name, value in net.named_parameters() if name.endswith("bias"))
        assert -found.residual[i].item() == pytest.approx(share.item(), abs=1e-13)


def test_a_probability_is_promised_where_it_is_explained():
    found = explained(model_of(fixture_l()), flat([1, 1]), "input_x_gradient(output=probability)")
    p = torch.sigmoid(torch.tensor(4.0)).item()
    assert found.promised.item() == pytest.approx(p, rel=1e-6)
    assert found.maps.flatten().tolist() == pytest.approx([6 * p * (1 - p), -4 * p * (1 - p)], rel=1e-5)


@pytest.mark.parametrize("which", ["simple", "complex"])
def test_parity_with_captum(which, request):
    """Captum 0.9.0; float32, so equal to 1e-5 of the largest value."""
    model, samples = request.getfixturevalue(f"{which}_model"), request.getfixturevalue(f"{which}_samples")
    maps = explain(model, samples.batch, "input_x_gradient")
    images = samples.batch.images.clone().requires_grad_()
    wanted = InputXGradient(model.net).attribute(images, target=samples.batch.targets).detach()
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-5 * wanted.abs().max().item())
