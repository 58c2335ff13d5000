"""Blur integrated gradients: scipy's blur, exactness on linear models, residuals, and the PAIR library's algorithm."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch import nn

from doubles import double, linear, raw, scores, smooth_cnn
from saliometer.methods.blur_ig import blurred, kernels
from saliometer.types import Model
from toys import Formula, batch_of, explain, explained, fixture_l, flat, model_of, noise_batch


def scipys(image: np.ndarray, sigma: float) -> np.ndarray:
    """scipy 1.17, truncated at 4 sigmas (its default), zero beyond the border."""
    return gaussian_filter(image, (0, sigma, sigma), mode="constant", truncate=4.0)


def tanh_net(side: int) -> Model:
    """Two convolutions and a linear layer, in double precision, without kinks."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        net = nn.Sequential(
            nn.Conv2d(3, 6, 3), nn.Tanh(), nn.Conv2d(6, 4, 3, stride=2), nn.Tanh(), nn.Flatten(),
            nn.Linear(4 * ((side - 3) // 2) ** 2, 3),
        )  # fmt: skip
    return model_of(net.double())


def noise_image(side: int = 32) -> torch.Tensor:
    return torch.rand(1, 3, side, side, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.mark.parametrize("shape", [(8, 8), (5, 11), (1, 9)])
def test_the_blur_is_scipys(shape):
    """Also where the kernel is wider than the image, and where it is a single pixel (sigma below 0.125)."""
    sigmas = [0.0, 0.1, 0.125, 0.3, 0.5, 1.0, 2.7, 6.0, 20.0]
    images = torch.rand(2, 3, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = blurred(images, kernels(images, sigmas)).numpy()
    wanted = np.stack([[scipys(image, sigma) for image in images.numpy()] for sigma in sigmas])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)
    single = images.float()
    np.testing.assert_allclose(blurred(single, kernels(single, sigmas)).numpy(), wanted, rtol=0, atol=1e-6)


def test_a_linear_model_is_shared_out_exactly():
    """methods.md 3.7: w (x - L) with L the most blurred image, 50 / 224 of the shorter side; `pair` misses it."""
    batch = double(noise_batch(classes=1, side=32))
    weights = torch.randn(3, 32, 32, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    soft = np.stack([scipys(image, 50 * 32 / 224) for image in batch.images.numpy()])
    wanted = weights * (batch.images - torch.from_numpy(soft))
    found = raw(linear(weights), batch, "blur_ig(steps=7)")
    torch.testing.assert_close(found.maps, wanted, rtol=0, atol=1e-13)
    assert found.residual.abs().max() < 1e-11
    assert not found.flags["loose"].any()
    pair = raw(linear(weights), batch, "blur_ig(scheme=pair)")  # 50 pixels, whatever the size
    soft = np.stack([scipys(image, 50) for image in batch.images.numpy()])
    wanted = weights * (batch.images - torch.from_numpy(soft))
    assert (pair.maps - wanted).abs().max() > 0.2 * wanted.abs().max()
    assert pair.flags["loose"].all()


def test_it_sums_to_the_change_in_score_and_the_pair_scheme_does_not():
    """methods.md 0.7: on noise `pair` loses all that goes from sigma 0 to 0.5; ours is off by 0.1 % at most."""
    model, batch = tanh_net(32), batch_of(noise_image())
    found = raw(model, batch, "blur_ig")
    soft = torch.from_numpy(scipys(batch.images[0].numpy(), 50 * 32 / 224))[None]
    wanted = scores(model, batch.images, batch.targets) - scores(model, soft, batch.targets)
    torch.testing.assert_close(found.promised, wanted)
    assert found.residual.abs().item() < 1e-3 * wanted.abs().item()
    pair = raw(model, batch, "blur_ig(scheme=pair)")  # 50 pixels, whatever the size
    assert pair.residual.abs().item() > 0.1 * pair.promised.abs().item()
    assert pair.flags["loose"].tolist() == [True]


def literal_pair(model: Model, image: torch.Tensor, target: int, steps: int, most: float) -> np.ndarray:
    """The PAIR library's algorithm as methods.md 3.7 tells it, step by step, with scipy's blur."""
    x, total = image.numpy(), np.zeros(image.shape)
    for i in range(steps):
        sigma = i * most / steps
        here = scipys(x, sigma)
        change = (scipys(x, sigma + 0.01) - here) / 0.01
        shown = torch.from_numpy(here)[None].requires_grad_()
        (slope,) = torch.autograd.grad(model.logits(shown)[0, target], shown)
        total += (most / steps) * slope[0].numpy() * change
    return -total


def test_parity_with_the_pair_library_retold():
    model, batch = smooth_cnn(), double(noise_batch())
    maps = raw(model, batch, "blur_ig(scheme=pair,steps=10,sigma=2)").maps.numpy()
    for i in range(len(batch)):
        wanted = literal_pair(model, batch.images[i], int(batch.targets[i]), 10, 2.0)
        np.testing.assert_allclose(maps[i], wanted, rtol=0, atol=1e-12)


def test_the_secant_scheme_is_the_sum_over_its_steps():
    """a = - sum (L(i+1) - L(i)) (g(i) + g(i+1)) / 2 with sigmas that grow as squares."""
    model, batch = smooth_cnn(), double(noise_batch(2))
    maps = raw(model, batch, "blur_ig(steps=6)").maps
    most = 50 * 8 / 224
    levels, slopes = [], []
    for k in range(7):
        soft = np.stack([scipys(image, most * (k / 6) ** 2) for image in batch.images.numpy()])
        levels.append(torch.from_numpy(soft).requires_grad_())
        score = model.logits(levels[-1]).gather(1, batch.targets[:, None]).sum()
        slopes.append(torch.autograd.grad(score, levels[-1])[0])
    wanted = -sum((levels[k + 1] - levels[k]) * (slopes[k] + slopes[k + 1]) / 2 for k in range(6)).detach()
    torch.testing.assert_close(maps, wanted, rtol=0, atol=1e-14)


def test_degenerate_images_are_flagged():
    black = explained(model_of(Formula(lambda x: (x**2).sum(1))), flat([0, 0, 0], [1, 0, 2]), "blur_ig(steps=3)")
    assert black.flags["equal_baseline"].tolist() == [True, False]
    assert black.maps[0].abs().sum() == 0
    assert (black.residual[0].item(), black.promised[0].item()) == (0, 0)
    dead = explained(model_of(Formula(lambda x: (x.sum(1) - 100).relu())), flat([1, 0, 2]), "blur_ig(sigma=300)")
    assert dead.flags["zero_gradient"].tolist() == [True]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("steps=0", "blur_ig: steps=0, sigma=50.0; wanted steps of 1 or more, sigma of 0 or more"),
        ("sigma=-1.0", "blur_ig: steps=100, sigma=-1.0; wanted"),
        ("scheme=secants", "there is no scheme 'secants'. Did you mean 'secant'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        explain(model_of(fixture_l()), flat([1, 1]), f"blur_ig({params})")
