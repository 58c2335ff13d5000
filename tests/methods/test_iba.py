"""IBA: capacities and the toy of methods.md 9.2, the authors' loop written with autograd, references, refusals."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cam_toys import Tokens, gap_cnn, made
from saliometer.engine.answer import Answers
from saliometer.engine.score import attributions
from saliometer.methods.iba import capacity, shares
from saliometer.seeds import normal
from saliometer.types import Batch, Model
from toys import CPU, asked, explain, explained, model_of, noise_batch


def references(count: int = 120, side: int = 8, seed: int = 5) -> Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(seed))


def with_references(batch: Batch, count: int = 120, dtype: torch.dtype = torch.float32) -> Batch:
    return replace(batch, images=batch.images.to(dtype), references=references(count).to(dtype))


# Known answers


@pytest.mark.parametrize(("share", "unusual", "nats"), [(0.5, 2.0, 0.818147), (0.0, 3.0, 0.0)])
def test_the_capacity_of_one_feature(share, unusual, nats):
    found = capacity(torch.tensor(share, dtype=torch.float64), torch.tensor(unusual, dtype=torch.float64)).item()
    assert found == pytest.approx(nats, abs=1e-6)
    assert found / math.log(2) == pytest.approx({0.5: 1.18034, 0.0: 0.0}[share], abs=1e-5)


def test_the_capacity_at_the_start():
    share = shares(torch.full((1, 1, 8, 8), 5.0, dtype=torch.float64))
    assert capacity(share, torch.ones_like(share)).flatten().tolist() == pytest.approx([5.00007] * 64, abs=1e-5)


def test_the_shares_are_smoothed_by_a_gaussian_of_five_by_five():
    alpha = torch.full((1, 1, 9, 9), -torch.inf, dtype=torch.float64)
    alpha[0, 0, 4, 4] = torch.inf
    found = shares(alpha)[0, 0]
    assert found[4, 4].item() == pytest.approx(0.1621, abs=5e-5)
    assert found[2, 2].item() == pytest.approx(0.0030, abs=5e-5)
    assert found[1].abs().max() == 0
    torch.testing.assert_close(found, blurred_by_hand((alpha == torch.inf).double())[0, 0])


@pytest.mark.parametrize("alpha", [17.0, 100.0])
def test_a_share_of_all_has_a_finite_capacity_in_single_precision(alpha):
    share = shares(torch.full((1, 1, 4, 4), alpha))
    assert share.max() < 1
    assert capacity(share, torch.zeros_like(share)).isfinite().all()


class Spot(nn.Module):
    """The toy of methods.md 9.2: an identity layer, and the logit 4 z of one place against 0."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        score = 4 * self.features(images)[:, 0, 3, 4]
        return torch.stack((score, torch.zeros_like(score)), 1)


def spot_batch(count: int = 20) -> Batch:
    """3 at one place, 0 elsewhere; references of mean 0 and sample deviation 1 at every place."""
    others = torch.randn(1000, 1, 8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    others = (others - others.mean(0)) / others.std(0)
    images = torch.zeros(count, 1, 8, 8, dtype=torch.float64)
    images[:, 0, 3, 4] = 3
    return Batch(images, torch.zeros(count, dtype=torch.int64), torch.arange(count), others)


@pytest.mark.parametrize(("beta", "low", "high"), [(10, 0.015, 0.06), (0.001, 5.0, 8.0)])
def test_the_toy(beta, low, high):
    """The sheet's run had 0.0165 and 6.9 bits there and 0.0025 elsewhere; noise spreads the first two."""
    found = explained(model_of(Spot(), "features"), spot_batch(), f"iba(layer=features,beta={float(beta)})")
    maps = found.maps[:, 0]
    assert (maps.flatten(1).argmax(1) == 3 * 8 + 4).all()
    there = maps[:, 3, 4]
    assert low < there.min() < there.max() < high
    assert maps[:, 0, 0].median().item() == pytest.approx(0.0025, abs=0.0005)
    assert not found.flags["few_references"].any()


# The whole of it, as the authors' code does it


def blurred_by_hand(values: Tensor) -> Tensor:
    taps = (-0.5 * torch.arange(-2.0, 3, dtype=values.dtype) ** 2).exp()
    kernel = torch.outer(taps, taps) / taps.sum() ** 2
    kernel = kernel.expand(values.shape[1], 1, 5, 5)
    return F.conv2d(F.pad(values, (2, 2, 2, 2), mode="reflect"), kernel, groups=values.shape[1])


def by_autograd(model: Model, batch: Batch, cut: int, steps: int, copies: int, beta: float) -> Tensor:
    """One image at a time through the layers before and behind `cut`, with torch.optim.Adam."""
    head, tail = model.net[: cut + 1], model.net[cut + 1 :]
    usual = head(batch.references).detach()
    mean, deviation = usual.mean(0), usual.std(0).clamp(min=0.01)
    active = ((usual != 0).to(usual.dtype).mean(0) > 0.01).to(usual.dtype)
    maps = []
    for image, target, seed in zip(batch.images, batch.targets, batch.seeds, strict=True):
        features = head(image[None]).detach()
        alpha = torch.full_like(features, 5.0).requires_grad_()
        optimiser = torch.optim.Adam([alpha], lr=1.0)
        for step in range(steps):
            share = blurred_by_hand(alpha.sigmoid()).clamp(max=1 - 1e-6)
            noise = torch.cat([normal(seed[None], f"iba {step} {copy}", like=features) for copy in range(copies)])
            passed = active * (share * features + (1 - share) * (mean + deviation * noise))
            passed = passed.relu() if isinstance(head[-1], nn.ReLU) else passed
            error = F.cross_entropy(tail(passed), target.expand(copies))
            variance, centre = (1 - share) ** 2, share * (features - mean) / deviation
            nats = -0.5 * (1 + variance.log() - centre**2 - variance) * active
            optimiser.zero_grad()
            (error + beta * nats.mean()).backward()
            optimiser.step()
        bits = nats.detach().sum(1, keepdim=True) / math.log(2)
        bits = bits * bits.shape[2] * bits.shape[3] / image.shape[1] / image.shape[2]
        maps.append(F.interpolate(bits, image.shape[1:], mode="bilinear", align_corners=False))
    return torch.cat(maps)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_it_is_the_authors_loop(cut):
    """In float64, to 1e-8: noise, clamp, inactive features, blur, both parts of the loss, and the last pass's map."""
    net = gap_cnn().double()
    with torch.no_grad():
        net[0].bias[1], net[2].bias[1] = -100, -100  # never active
    model, batch = model_of(net), with_references(noise_batch(3), dtype=torch.float64)
    found = explain(model, batch, f'iba(layer="{cut}",steps=4,copies=3,beta=2)')
    wanted = by_autograd(model, batch, cut, 4, 3, 2.0)
    assert wanted.std() > 0
    torch.testing.assert_close(found, wanted, rtol=1e-7, atol=1e-8)


class Looks(nn.Module):
    """Keeps the lowest value that passes."""

    lowest = 0.0

    def forward(self, features: Tensor) -> Tensor:
        self.lowest = min(self.lowest, features.min().item())
        return features


def test_noise_behind_a_relu_is_rectified_too():
    net = gap_cnn()
    net[4] = nn.Sequential(Looks(), net[4])
    explain(model_of(net), with_references(noise_batch(2)), 'iba(layer="3",steps=3,copies=2,beta=100)')
    assert net[4][0].lowest == 0


def test_the_class_token_passes_unhindered():
    model, batch = made(Tokens), with_references(noise_batch(3))
    found = explained(model, batch, "iba(layer=norm,steps=3,copies=2)")
    assert found.maps.isfinite().all()
    assert found.maps.min() >= 0
    assert found.facts["layer_height"].tolist() == [4, 4, 4]


def test_noise_is_an_images_own():
    """Alone, in another place of the batch and with other neighbours: the same map for the same seed."""
    batch, text = with_references(noise_batch(3)), 'iba(layer="1",steps=4,copies=3,beta=0.01)'
    together = explain(model_of(gap_cnn()), batch, text)
    reseeded = explain(model_of(gap_cnn()), replace(batch, seeds=batch.seeds + torch.tensor([0, 7, 0])), text)
    alone = explain(model_of(gap_cnn()), batch[2:], text)
    torch.testing.assert_close(together[2:], alone)
    assert [torch.allclose(*pair) for pair in zip(together, reseeded, strict=True)] == [True, False, True]


def test_it_works_for_a_caller_in_inference_mode():
    model, batch = model_of(gap_cnn()), with_references(noise_batch(2))
    wanted = explain(model, batch, 'iba(layer="1",steps=2,copies=2)')
    with torch.inference_mode():
        found = explain(model, with_references(noise_batch(2)), 'iba(layer="1",steps=2,copies=2)')
    torch.testing.assert_close(found, wanted)


def test_its_only_gradients_are_those_of_the_tail():
    """2 images and 120 references once, then 3 copies of 2 images for all steps but the last."""
    answers = Answers(model_of(gap_cnn()), CPU)
    attributions([asked('iba(layer="1",steps=4,copies=3)')], answers, with_references(noise_batch(2)))
    assert answers.passes == answers.asked == 2 + 120 + 3 * 3 * 2


# References


def test_too_few_references_are_a_misfit():
    """An audit of every method leaves it out, and says so, instead of failing."""
    with pytest.raises(AssertionError, match="UnfitError: iba: 99 references"):
        explain(model_of(gap_cnn()), with_references(noise_batch(2), 99), 'iba(layer="1",steps=1)')


@pytest.mark.parametrize(("count", "few"), [(100, True), (999, True), (1000, False)])
def test_few_references_are_told(count, few):
    batch = with_references(noise_batch(2), count)
    found = explained(model_of(gap_cnn()), batch, 'iba(layer="1",steps=1)')
    assert found.flags["few_references"].tolist() == [few, few]


@pytest.mark.parametrize(
    ("given", "params", "words"),
    [
        (None, 'layer="1"', "iba compares with other images of the data and was given none"),
        (references(99), 'layer="1"', "iba: 99 references were given, wanted 100 or more"),
        (references(100, 6), 'layer="1"', r"iba: references have shape \(100, 3, 6, 6\), wanted \(R, 3, 8, 8\)"),
        (references(), "", "iba: found no middle layer of feature maps"),
        (
            references(),
            'layer="1",steps=0',
            "iba: beta=10.0, steps=0, copies=10, rate=1.0; wanted steps and copies of 1",
        ),
        (references(), 'layer="1",copies=0', "iba: beta=10.0, steps=10, copies=0"),
        (references(), 'layer="1",beta=-1', "iba: beta=-1, steps=10"),
        (references(), 'layer="1",rate=0', "rate=0; wanted"),
    ],
)
def test_what_cannot_be_done_is_refused(given, params, words):
    with pytest.raises(AssertionError, match=f"(ValueError|UnfitError): .*{words}"):
        explain(model_of(gap_cnn()), replace(noise_batch(2), references=given), f"iba({params})")


def test_a_layer_that_is_never_active_is_refused():
    net = gap_cnn()
    with torch.no_grad():
        net[2].bias.fill_(-100)
    with pytest.raises(AssertionError, match="ValueError: iba: layer '3' is 0 on nearly all references"):
        explain(model_of(net), with_references(noise_batch(2)), 'iba(layer="3")')
