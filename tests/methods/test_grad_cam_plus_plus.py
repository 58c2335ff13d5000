"""Grad-CAM++: fixtures A and C of methods.md, signed activations, and pytorch-grad-cam."""

import pytest
import torch

from cam_toys import FIXTURE_A, FIXTURE_C, IMAGE_A, IMAGE_C, ChannelsLast, assert_parity, made
from toys import CamHead, batch_of, explain, explained, model_of, noise_batch, small_cnn


def test_fixture_a():
    found = explained(FIXTURE_A, batch_of(IMAGE_A), "grad_cam_plus_plus")
    assert found.maps.flatten().tolist() == pytest.approx([0.2222, 0.4444, 0.6667, 0.8889], abs=1e-4)
    assert found.flags["signed_activations"].tolist() == [False]


def test_fixture_c():
    maps = explain(FIXTURE_C, batch_of(IMAGE_C), "grad_cam_plus_plus")
    assert maps.flatten().tolist() == pytest.approx([0.3333, 0.1667, 0, 0.1667], abs=1e-4)


def test_the_weight_is_that_of_the_formula():
    """methods.md 7, written out for every channel and place, in float64."""
    model, batch = model_of(small_cnn().double()), noise_batch()
    batch = type(batch)(batch.images.double(), batch.targets, batch.seeds)
    activations = model.net[:4](batch.images).requires_grad_()
    score = model.net[4:](activations).gather(1, batch.targets[:, None]).sum()
    (slopes,) = torch.autograd.grad(score, activations)
    wanted = torch.zeros(5, 4, 4, dtype=torch.float64)
    for n in range(5):
        for k in range(5):
            weight, mass = 0.0, activations[n, k].sum().item()
            for g in slopes[n, k].flatten().tolist():
                weight += g**2 / (2 * g**2 + mass * g**3 + 1e-6) * max(g, 0) if g else 0
            wanted[n] += weight * activations[n, k].detach()
    wanted = torch.nn.functional.interpolate(wanted[:, None].relu(), (8, 8), mode="bilinear", align_corners=False)
    torch.testing.assert_close(explain(model, batch, "grad_cam_plus_plus"), wanted, rtol=1e-10, atol=1e-12)


def test_a_share_that_is_not_finite_counts_as_0():
    """A slope of 1e20 has no square in float32: inf / inf."""
    weights = torch.tensor([[[1e20, 0.0]], [[0.0, 1.0]]])
    image = torch.tensor([[[[1.0, 1.0]], [[1.0, 3.0]]]])
    model = model_of(CamHead(weights, pooled=False), "features")
    maps = explain(model, batch_of(image), "grad_cam_plus_plus")
    assert maps.flatten().tolist() == pytest.approx([1 / 6, 3 / 6], rel=1e-5)  # of the second channel, 1 / (2 + 4)


def test_signed_activations_are_told():
    """The denominator of the second image, 2 - 4 + 1e-6, is negative, and so is its weight: -0.5 times (-5, 1)."""
    model = model_of(CamHead(torch.tensor([[[1.0, 0.0]]]), pooled=False), "features")
    images = torch.tensor([[[[1.0, 1.0]]], [[[-5.0, 1.0]]]])
    found = explained(model, batch_of(images), "grad_cam_plus_plus(relu=none)")
    assert found.flags["signed_activations"].tolist() == [False, True]
    assert found.maps[1].flatten().tolist() == pytest.approx([2.5, -0.5], rel=1e-5)


def test_parity_with_pytorch_grad_cam(complex_model, complex_samples):
    """1.5.7, scaled as theirs; 2e-5."""
    maps = explain(complex_model, complex_samples.batch, "grad_cam_plus_plus")
    assert_parity("GradCAMPlusPlus", maps, complex_model, complex_samples.batch)


def test_parity_with_pytorch_grad_cam_where_activations_are_signed():
    model, batch = made(ChannelsLast), noise_batch(6)
    maps = explain(model, batch, "grad_cam_plus_plus")
    assert_parity("GradCAMPlusPlus", maps, model, batch, lambda output: output.permute(0, 3, 1, 2))
