"""DeepLIFT and DeepSHAP against Captum 0.9 and shap 0.51 where those are right, against the formulas, and their sums.

Captum is not complete if a ReLU stands right before or behind a maximum, so in its networks none does.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from doubles import raw, scores
from saliometer.types import Batch, Model
from toys import explain, model_of

DOUBLE = torch.float64
DEEPLIFT = ("deeplift_rescale", "deeplift_reveal_cancel", "deep_shap(count=3)")


def made(*layers: nn.Module, seed: int = 0) -> nn.Sequential:
    """Random weights, and biases that matter, in double precision."""
    net = nn.Sequential(*layers).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for values in net.parameters():
        values.normal_(0, 0.3 if values.ndim == 1 else values[0].numel() ** -0.5, generator=generator)
    return net


def batch_of(count: int = 4, side: int = 8, references: int = 5, seed: int = 0) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    images, others = (
        2 * torch.rand(n, 3, side, side, dtype=DOUBLE, generator=generator) - 1 for n in (count, references)
    )
    return Batch(images, torch.arange(count) % 3, torch.arange(count), others)


def convolutional(act: nn.Module, pool: nn.Module) -> nn.Sequential:
    return made(
        nn.Conv2d(3, 6, 3, padding=1), pool, nn.Conv2d(6, 5, 3, padding=1), act, nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(5 * 2 * 2, 7), nn.ReLU(), nn.Linear(7, 3),
    )  # fmt: skip


# Captum


@pytest.mark.parametrize("act", [nn.ReLU(), nn.Sigmoid(), nn.Tanh(), nn.ELU(), nn.LeakyReLU()])
@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.AvgPool2d(2)])
def test_rescale_is_captums(act, pool):
    captum = pytest.importorskip("captum.attr")
    net, batch = convolutional(act, pool), batch_of(references=1)
    start = batch.references.expand_as(batch.images)
    wanted = captum.DeepLift(net).attribute(batch.images, start, target=batch.targets).detach()
    found = raw(model_of(net), batch, "deeplift_rescale(baseline=mean)").maps
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("pool", [nn.MaxPool2d(2), nn.AvgPool2d(2)])
def test_deep_shap_is_captums(pool):
    captum = pytest.importorskip("captum.attr")
    net, batch = convolutional(nn.ReLU(), pool), batch_of()
    wanted = captum.DeepLiftShap(net).attribute(batch.images, batch.references, target=batch.targets).detach()
    torch.testing.assert_close(raw(model_of(net), batch, "deep_shap").maps, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("layers", [(nn.ReLU(), nn.MaxPool2d(2)), (nn.MaxPool2d(2), nn.ReLU())])
def test_captum_is_not_complete_where_a_relu_stands_beside_a_maximum_and_ours_is(layers):
    captum = pytest.importorskip("captum.attr")
    net, batch = made(nn.Conv2d(3, 4, 3, padding=1), *layers, nn.Flatten(), nn.Linear(64, 3)), batch_of(references=1)
    start = batch.references.expand_as(batch.images)
    rise = scores(model_of(net), batch.images, batch.targets) - scores(model_of(net), start, batch.targets)
    theirs = captum.DeepLift(net).attribute(batch.images, start, target=batch.targets).detach()
    ours = raw(model_of(net), batch, "deep_shap").maps
    assert (theirs.sum((1, 2, 3)) - rise).abs().max() > 0.01
    torch.testing.assert_close(ours.sum((1, 2, 3)), rise)


# shap


def test_deep_shap_is_that_of_its_authors():
    """In float32, which is all that shap works in; a ReLU right before a maximum is no trouble for it."""
    shap = pytest.importorskip("shap")
    net = made(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 5, 3, padding=1), nn.ReLU(),
               nn.AvgPool2d(2), nn.Flatten(), nn.Linear(20, 7), nn.ReLU(), nn.Linear(7, 3)).float()  # fmt: skip
    batch = batch_of()
    images, references = batch.images.float(), batch.references.float()
    try:
        values = shap.DeepExplainer(net, references).shap_values(images, check_additivity=False)
    except Exception as error:
        pytest.skip(f"shap does not run here: {error}")
    wanted = torch.from_numpy(np.asarray(values))[torch.arange(4), ..., batch.targets]
    found = raw(model_of(net), replace(batch, images=images, references=references), "deep_shap").maps
    torch.testing.assert_close(found, wanted.float(), rtol=1e-4, atol=1e-7)


# RevealCancel, by its formulas, on dense networks


def revealed(net: nn.Sequential, image: Tensor, start: Tensor, target: int) -> Tensor:
    """methods.md 6.2 unit by unit, for linear layers with ReLUs between them."""
    layers = [layer for layer in net if isinstance(layer, nn.Linear)]
    change, now = (image - start).flatten(), start.flatten()
    kept = []
    for layer in layers:
        more, less = layer.weight.clamp(min=0), layer.weight.clamp(max=0)
        up, down = change.clamp(min=0), change.clamp(max=0)
        positive, negative = more @ up + less @ down, less @ up + more @ down
        base = layer.weight @ now + layer.bias
        relu = (lambda z: z) if layer is layers[-1] else F.relu
        p = (relu(base + positive) - relu(base) + relu(base + negative + positive) - relu(base + negative)) / 2
        n = (relu(base + negative) - relu(base) + relu(base + positive + negative) - relu(base + positive)) / 2
        kept.append((layer.weight, change, positive, negative, p, n))
        change, now = p + n, relu(base)
    plus = minus = F.one_hot(torch.tensor(target), len(change)).to(change)
    for weight, change, positive, negative, p, n in reversed(kept):
        plus, minus = plus * (p / positive).nan_to_num(), minus * (n / negative).nan_to_num()
        up = weight.clamp(min=0).T @ plus + weight.clamp(max=0).T @ minus
        down = weight.clamp(max=0).T @ plus + weight.clamp(min=0).T @ minus
        plus = minus = torch.where(change > 0, up, torch.where(change < 0, down, (up + down) / 2))
    return plus * (image - start).flatten()


@pytest.mark.parametrize("seed", range(3))
def test_reveal_cancel_is_what_its_formulas_say(seed):
    net = made(nn.Flatten(), nn.Linear(12, 9), nn.ReLU(), nn.Linear(9, 6), nn.ReLU(), nn.Linear(6, 3), seed=seed)
    batch = batch_of(3, 2, 1, seed)
    found = raw(model_of(net), batch, "deeplift_reveal_cancel(baseline=mean)").maps
    for place, image in enumerate(batch.images):
        wanted = revealed(net, image, batch.references[0], int(batch.targets[place]))
        torch.testing.assert_close(found[place].flatten(), wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("relu", [F.relu, lambda x: torch.where(x > 0, x, 0.0)])
def test_genomics_rescales_behind_convolutions_only(relu):
    class Mixed(nn.Module):
        def __init__(self, dense: bool) -> None:
            super().__init__()
            self.first, self.middle, self.head = nn.Conv2d(3, 4, 3), nn.Linear(36, 5), nn.Linear(5 if dense else 36, 3)
            self.dense = dense

        def forward(self, images: Tensor) -> Tensor:
            features = relu(F.max_pool2d(self.first(images), 2)).flatten(1)
            return self.head(relu(self.middle(features)) if self.dense else features)

    batch = batch_of()
    for dense in (False, True):
        model = model_of(made(Mixed(dense)))
        genomics = raw(model, batch, "deeplift_reveal_cancel(mode=genomics,baseline=mean)").maps
        rescaled = raw(model, batch, "deeplift_rescale(baseline=mean)").maps
        assert torch.allclose(genomics, rescaled, rtol=1e-8, atol=1e-12) != dense


# Sums


class Rich(nn.Module):
    """Everything that has a rule: norms with negative factors, sums, products, gates, overlapping maxima, parts."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.gate, self.head = nn.Conv2d(6, 6, 3, padding=1), nn.Linear(6, 6), nn.Linear(12, 3)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(images)))
        a, b = (self.second(x) - x).chunk(2, 1)
        y = torch.cat((F.max_pool2d(F.leaky_relu(a), 3, 2, 1), F.adaptive_max_pool2d(torch.tanh(b), 4)), 1)
        gated = y * torch.sigmoid(self.gate(x.mean((2, 3))))[:, :, None, None].expand_as(y)
        rest = (F.avg_pool2d(x, 2) * y).flatten(2).max(2).values
        return self.head(torch.cat((F.silu(gated - 0.1).mean((2, 3)), F.relu6(rest)), 1))


def rich(seed: int) -> Model:
    net = made(Rich(), seed=seed)
    generator = torch.Generator().manual_seed(seed)
    net[0].norm.running_mean.normal_(generator=generator)
    net[0].norm.running_var.uniform_(0.5, 2, generator=generator)
    return model_of(net)


@pytest.mark.parametrize("text", DEEPLIFT)
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6))
def test_maps_sum_to_the_rise_in_score(text, seed):
    model, batch = rich(seed), batch_of(2, seed=seed)
    found = raw(model, batch, text)
    starts = batch.references[:3] if text.startswith("deep_shap") else torch.zeros(1, 3, 8, 8, dtype=DOUBLE)
    before = torch.stack([scores(model, one[None].expand(2, -1, -1, -1), batch.targets) for one in starts]).mean(0)
    rise = scores(model, batch.images, batch.targets) - before
    torch.testing.assert_close(found.maps.sum((1, 2, 3)), rise, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(found.promised, rise, rtol=1e-10, atol=1e-12)
    assert found.residual.abs().max() < 1e-12
    assert not found.flags["loose"].any()


@pytest.mark.parametrize("text", DEEPLIFT)
def test_in_single_precision_the_rest_is_rounding(text):
    worst = []
    for seed in range(3):
        model, batch = rich(seed), batch_of(8, seed=seed)
        model.net.float()
        found = raw(model, replace(batch, images=batch.images.float(), references=batch.references.float()), text)
        assert found.residual.dtype == DOUBLE
        worst.append((found.residual.abs() / found.promised.abs().clamp(min=1e-6)).max())
        assert not found.flags["loose"].any()
    assert max(worst) < 1e-4
    assert min(worst) < 1e-5


@pytest.mark.parametrize("text", DEEPLIFT)
def test_a_linear_network_gets_its_weights_times_the_difference(text):
    net = made(nn.Conv2d(3, 4, 3), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    batch = batch_of(references=3)
    start = batch.references.mean(0) if text.startswith("deep_shap") else torch.zeros(3, 8, 8, dtype=DOUBLE)
    wanted = raw(model_of(net), batch, "gradient").maps * (batch.images - start)
    torch.testing.assert_close(raw(model_of(net), batch, text).maps, wanted, rtol=1e-10, atol=1e-13)


class Additive(nn.Module):
    """A function of each pixel alone, added up."""

    def forward(self, images: Tensor) -> Tensor:
        score = (F.silu(3 * images) + F.relu(images - 0.2)).flatten(1).sum(1, keepdim=True)
        return torch.cat((score, -score, score), 1)


def test_a_sum_over_pixels_gets_its_shapley_values():
    """Each pixel's own difference, as KernelSHAP finds it, with one reference as its fill."""
    batch = batch_of(2, 2, 1)
    one = replace(batch, images=batch.images[:, :1], references=batch.references[:, :1])
    model = model_of(Additive())
    exact = raw(model, one, "kernel_shap(segments=grid,cells=2,fill=mean)").maps
    for text in ("deep_shap", "deeplift_rescale(baseline=mean)", "deeplift_reveal_cancel(baseline=mean)"):
        torch.testing.assert_close(raw(model, one, text).maps, exact, rtol=1e-8, atol=1e-10)


def test_one_reference_makes_deep_shap_deeplift_and_many_their_mean():
    model, batch = rich(0), batch_of()
    each = [raw(model, replace(batch, references=one[None]), "deeplift_rescale(baseline=mean)").maps
            for one in batch.references]  # fmt: skip
    alone = raw(model, replace(batch, references=batch.references[:1]), "deep_shap").maps
    torch.testing.assert_close(alone, each[0], rtol=1e-10, atol=1e-13)
    found = raw(model, batch, "deep_shap")
    torch.testing.assert_close(found.maps, torch.stack(each).mean(0), rtol=1e-10, atol=1e-13)
    rises = torch.stack([one.sum((1, 2, 3)) for one in each])
    torch.testing.assert_close(found.facts["spread"], rises.std(0, correction=0), rtol=1e-8, atol=1e-12)


# Degenerate cases


@pytest.mark.parametrize("text", ["deeplift_rescale(baseline=mean)", "deeplift_reveal_cancel(baseline=mean)"])
def test_an_image_that_is_its_baseline_gets_nothing(text):
    batch = batch_of(references=1)
    batch = replace(batch, images=torch.cat((batch.references, batch.images[1:])))
    found = raw(rich(0), batch, text)
    assert found.flags["equal_baseline"].tolist() == [True, False, False, False]
    assert found.maps[0].abs().max() == 0
    assert found.residual[0] == found.promised[0] == 0
    assert not found.flags["loose"].any()


@pytest.mark.parametrize("text", ["deeplift_rescale(baseline=mean)", "deeplift_reveal_cancel(baseline=mean)"])
@pytest.mark.parametrize("step", [1e-3, 1e-9, 1e-15])
def test_next_to_the_baseline_it_is_the_slope_times_the_difference(text, step):
    """Where nothing bends between the two, however close they are: the quotient of differences has a limit."""
    net = made(nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(144, 3))
    batch = batch_of(2, references=1)
    near = replace(batch, images=batch.references + step * batch.images)
    slope = raw(model_of(net), replace(batch, images=batch.references.expand(2, -1, -1, -1)), "gradient").maps
    found = raw(model_of(net), near, text).maps
    wanted = slope * (near.images - batch.references)
    rounding = 1e-5  # of quotients at units whose own difference is thousands of times smaller than the step
    assert (found - wanted).abs().max() <= max(step, rounding) * 5 * wanted.abs().max()


def test_references_may_be_fewer_than_asked_for():
    batch = batch_of()
    torch.testing.assert_close(
        explain(rich(0), batch, "deep_shap(count=100)"), explain(rich(0), batch, "deep_shap(count=5)")
    )
