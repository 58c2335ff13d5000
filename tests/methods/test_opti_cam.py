"""Opti-CAM: the toy of methods.md, PyTorch's own Adam and autograd over the whole network, and dead layers."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cam_toys import gap_cnn
from saliometer.methods._adam import Adam
from saliometer.types import Batch, Model
from toys import batch_of, explain, explained, model_of, noise_batch


class Corners(nn.Module):
    """The toy of methods.md 7: three maps for any image, and the score x11 - x22."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        maps = images.new_tensor([[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 0.5], [0.5, 0]]])
        self.features(maps.expand(len(images), -1, -1, -1))
        score = images[:, 0, 0, 0] - images[:, 0, 1, 1]
        return torch.stack((score, -score), 1)


ONES = batch_of(torch.ones(1, 1, 2, 2, dtype=torch.float64))


@pytest.mark.parametrize(("steps", "score"), [(0, 0), (1, 0.331)])
def test_the_first_steps_are_those_of_the_sheet(steps, score):
    mask = explain(model_of(Corners(), "features"), ONES, f"opti_cam(steps={steps})")[0, 0]
    assert (mask[0, 0] - mask[1, 1]).item() == pytest.approx(score, abs=5e-4)


def test_a_hundred_steps_find_the_map_that_scores():
    mask = explain(model_of(Corners(), "features"), ONES, "opti_cam")[0, 0]
    assert mask[0, 0] - mask[1, 1] > 0.99
    assert mask[1, 1] < 0.01
    assert mask[0, 0] == 1


def by_autograd(model: Model, batch: Batch, steps: int, rate: float, blank: float) -> Tensor:
    """The whole of it as one expression, with torch.optim.Adam."""
    maps = model.net[:4](batch.images).relu().detach()
    weights = torch.full(maps.shape[:2], 0.5, dtype=maps.dtype, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=rate)

    def mask() -> Tensor:
        mixed = (weights.softmax(1)[:, :, None, None] * maps).sum(1, keepdim=True)
        large = F.interpolate(mixed, batch.images.shape[2:], mode="bilinear", align_corners=False)
        low, high = large.amin((1, 2, 3), keepdim=True), large.amax((1, 2, 3), keepdim=True)
        return (large - low) / (high - low)

    for _ in range(steps):
        optimiser.zero_grad()
        logits = model.logits(blank + mask() * (batch.images - blank))
        (-logits.gather(1, batch.targets[:, None]).sum()).backward()
        optimiser.step()
    return mask().detach()


@pytest.mark.parametrize(("fill", "blank"), [("black", -1.0), ("zero", 0.0)])
def test_it_is_adam_over_the_whole_network(fill, blank):
    batch = noise_batch(3)
    batch = Batch(batch.images.double(), batch.targets, batch.seeds)
    model = model_of(gap_cnn().double(), mean=(0.5,), std=(0.5,))
    found = explain(model, batch, f"opti_cam(steps=7,rate=0.2,fill={fill})")
    torch.testing.assert_close(found, by_autograd(model, batch, 7, 0.2, blank), rtol=1e-8, atol=1e-10)


def test_the_masked_image_scores_higher_the_longer_it_climbs():
    model, batch = model_of(gap_cnn()), noise_batch()
    masks = [explain(model, batch, f"opti_cam(steps={steps})") for steps in (0, 30)]
    start, end = (model.logits(batch.images * mask).gather(1, batch.targets[:, None])[:, 0] for mask in masks)
    assert (end >= start).all()
    assert (end > start + 1e-3).any()


def test_a_mask_goes_from_0_to_1():
    maps = explain(model_of(gap_cnn()), noise_batch(), "opti_cam(steps=3)")
    assert maps.amin((1, 2, 3)).tolist() == [0] * 5
    assert maps.amax((1, 2, 3)).tolist() == pytest.approx([1] * 5)


class Signed(nn.Module):
    """Two feature maps with negative values, the same for every image, beside a score of the pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        maps = torch.tensor([[[1.0, -3.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, -1.0]]])
        self.features(maps.expand(len(images), -1, -1, -1).to(images))
        return images.flatten(1)[:, :2]


def test_negative_activations_count_as_none():
    """Both channels alike: 1 at the first place, 0 elsewhere, however negative they are there."""
    maps = explain(model_of(Signed(), "features"), batch_of(torch.ones(1, 1, 2, 2)), "opti_cam(steps=0)")
    assert maps.flatten().tolist() == [1, 0, 0, 0]


def test_a_dead_layer_makes_a_dead_map():
    net = gap_cnn()
    with torch.no_grad():
        net[2].bias.fill_(-100)
    found = explained(model_of(net), noise_batch(2), "opti_cam(steps=2)")
    assert found.maps.abs().max() == 0
    assert found.flags["dead_cam"].tolist() == [True, True]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("steps=-1", "ValueError: opti_cam: steps=-1, rate=0.1; wanted steps of 0 or more, rate above 0"),
        ("rate=0", "ValueError: opti_cam: steps=100, rate=0; wanted"),
        ("fill=grey", "LookupError: there is no fill 'grey'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        explain(model_of(gap_cnn()), noise_batch(2), f"opti_cam({params})")


def test_adam_takes_the_steps_of_pytorchs(rng):
    """In float64, to 1e-12, with slopes that change sign and one that stays 0."""
    values = torch.randn(3, 4, generator=rng, dtype=torch.float64)
    theirs, ours, step = values.clone().requires_grad_(), values, Adam(0.3)
    optimiser = torch.optim.Adam([theirs], lr=0.3)
    for _ in range(20):
        slopes = torch.randn(3, 4, generator=rng, dtype=torch.float64)
        slopes[0, 0] = 0
        theirs.grad = slopes.clone()
        optimiser.step()
        ours = step(ours, slopes)
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)
    assert ours[0, 0] == values[0, 0]
