"""Our own kernels give what PyTorch's operations give; here they run in Triton's interpreter, without a GPU."""

import inspect
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from packaging.version import Version
from torch import Tensor, nn

from saliometer import explain, fused, seeds
from saliometer.graph import finishing
from saliometer.graph.finishing import finished
from saliometer.methods._extremal import brush
from saliometer.methods._relevance import NO_BIAS, Books, Sloped, divided, largest_share
from toys import explained, model_of, noise_batch

CLOSE = {"rtol": 1e-5, "atol": 1e-6}
SHAPES = [(2, 3, 5, 7), (1, 20, 9, 9), (3, 2, 17, 17)]  # less than a tile, several of them in one, more than one


@pytest.fixture(scope="module")
def kernels():
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("this machine has a GPU: there they run as they are, and methods with them")
    from triton.runtime import interpreter

    if "int(self.handle.data)" in inspect.getsource(interpreter) and Version(np.__version__) >= Version("2.4"):
        pytest.skip("this Triton's interpreter takes NumPy up to 2.3; on a GPU it takes any")
    from saliometer.fused import compiled

    return compiled


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Some of them 0."""
    values = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return values.masked_fill(values.abs() < 0.3, 0)


def both_ways(kernels, monkeypatch, find):
    """What PyTorch's operations give, and our kernels."""
    found = [find()]
    monkeypatch.setattr(fused, "kernels", lambda *values: kernels)
    monkeypatch.setattr(finishing, "kernels", lambda *values: kernels)
    return [*found, find()]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("settings", [
    {}, {"epsilon": 0.25}, {"smallest": 0.5}, {"share": -2.0}, {"missing": True, "share": 2.0},
])  # fmt: skip
def test_quotients_and_their_books(kernels, monkeypatch, shape, settings):
    relevance = Sloped(drawn(*shape, seed=1), drawn(*shape, seed=2))
    total, bias = drawn(*shape), drawn(shape[1], 1, 1, seed=3)

    def find():
        books = Books()
        quotient = divided(relevance, total.clone(), bias, books, **settings)
        return quotient, books.totals(shape[0])

    (plain, wanted), (fused, totals) = both_ways(kernels, monkeypatch, find)
    torch.testing.assert_close(fused, plain, **CLOSE)
    assert totals.keys() >= wanted.keys()
    for part, amount in wanted.items():
        torch.testing.assert_close(totals[part], amount, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.0, 0.5), (0.0, torch.inf), (-torch.inf, torch.inf)])
def test_what_follows_a_convolution(kernels, monkeypatch, shape, layout, adds, low, high):
    made = drawn(*shape).masked_fill(drawn(*shape, seed=5) > 2, torch.nan).contiguous(memory_format=layout)
    added = drawn(*shape, seed=1).contiguous(memory_format=layout) if adds else None
    scale, shift = drawn(shape[1], seed=2), drawn(shape[1], seed=3)

    def find():
        return finished(made.clone(), scale, shift, added, low, high)

    plain, fused = both_ways(kernels, monkeypatch, find)
    torch.testing.assert_close(fused, plain, equal_nan=True, **CLOSE)


def test_no_bias_is_none(kernels):
    ones = torch.ones(1, 2, 3, 3)
    quotient, sums = kernels.divided(ones, 3 * ones, 2 * ones, NO_BIAS, 1.0, 0.0, 0.0)
    assert (quotient == 1.5).all()
    assert sums[:, 0, 0].tolist() == [13.5, 0, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_share(kernels, monkeypatch, shape):
    part, other, slope = (drawn(*shape, seed=seed) for seed in range(3))
    plain, fused = both_ways(kernels, monkeypatch, lambda: largest_share(part, part + other, slope).flatten(1).amax(1))
    torch.testing.assert_close(fused, plain, **CLOSE)
    assert (largest_share(part, part + other, 0 * slope) == 0).all()


@pytest.mark.parametrize("count", [1, 1500])
def test_streams_of_random_numbers_are_the_same_to_the_bit(kernels, monkeypatch, count):
    drawn_by = torch.tensor([0, 1, -1, 2**63 - 1, -(2**63), 12345678901234567])
    one, other = both_ways(kernels, monkeypatch, lambda: seeds.uniform(drawn_by, "test", count))
    assert torch.equal(one, other)


@pytest.mark.parametrize("references", [1, 2, 6])
def test_a_relu_between_a_reference_and_a_value(kernels, references):
    """Rows of values stand for every copy of an image, those of references for every image."""
    value, reference, multipliers = drawn(3, 2, 25), drawn(references, 2, 25, seed=1), drawn(6, 2, 25, seed=2)
    v, r = value.repeat(2, 1, 1), reference.repeat_interleave(6 // references, 0)
    share = (v.relu() + r.relu()) / (v.abs() + r.abs()).clamp(min=1e-30)
    torch.testing.assert_close(kernels.rectified(value, reference, multipliers), multipliers * share, **CLOSE)


@pytest.mark.parametrize("side", [12, 64])
def test_a_brush_paints_and_pulls_alike(kernels, monkeypatch, side):
    """Cells of one pixel, and of four."""
    paint = brush(torch.rand(1, 3, side, side + 8))
    grids, pull = drawn(2, *paint.nodes).abs().clamp(max=1), drawn(2, side, side + 8, seed=1)

    def find():
        masks = paint.masks(grids)
        return masks, paint.slopes(grids, masks, pull)

    (masks, slopes), (fused_masks, fused_slopes) = both_ways(kernels, monkeypatch, find)
    torch.testing.assert_close(fused_masks, masks, **CLOSE)
    torch.testing.assert_close(fused_slopes, slopes, rtol=1e-4, atol=1e-5)


class Residual(nn.Module):
    """Convolutions with biases, a sum and a maximum."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        x = self.first(images).relu()
        y = nn.functional.max_pool2d((self.norm(self.second(x)) + x).relu(), 2)
        return self.head(y.mean((2, 3)))


@pytest.mark.parametrize("name", [
    "lrp_z", "lrp_epsilon", "lrp_alpha_beta", "lrp_alpha_beta(bias=full)", "lrp_gamma", "lrp_epsilon_plus",
    "lrp_preset_b_flat", "deep_taylor", "deeplift_rescale", "deeplift_rescale(baseline=blur)", "deep_shap(count=3)",
    "deeplift_reveal_cancel", "deeplift_reveal_cancel(baseline=blur)", "guided_backprop",
])  # fmt: skip
def test_methods_give_the_same_maps_and_books(kernels, monkeypatch, name):
    with torch.random.fork_rng(devices=[]):
        model = model_of(Residual().eval())
    batch = replace(noise_batch(2), references=torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    plain, fused = both_ways(kernels, monkeypatch, lambda: explained(model, batch, name))
    torch.testing.assert_close(fused.maps, plain.maps, **CLOSE)
    assert fused.facts.keys() == plain.facts.keys()
    for fact, values in plain.facts.items():
        torch.testing.assert_close(fused.facts[fact], values, **CLOSE)


def test_without_a_gpu_there_are_none():
    assert fused.kernels(torch.ones(1, 2, 3, 3)) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", [
    "guided_backprop", "lrp_epsilon", "lrp_alpha_beta", "lrp_gamma", "deep_taylor", "deeplift_rescale",
    "deeplift_reveal_cancel", "deep_shap(count=3)", "smooth_grad(draws=3)",
    "extremal_perturbation(steps=3,areas='0.2')",
])  # fmt: skip
def test_on_a_gpu_maps_are_those_of_a_cpu(name):
    with torch.random.fork_rng(devices=[]):
        net = Residual().eval()
    images, references = noise_batch(3).images, torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(3)
    wanted = explain(net, images, name, targets, references=references)
    found = explain(net.cuda(), images.cuda(), name, targets.cuda(), references=references.cuda())
    assert fused.kernels(found) is not None
    torch.testing.assert_close(found.cpu(), wanted, rtol=1e-3, atol=1e-5 * float(wanted.abs().max()))
