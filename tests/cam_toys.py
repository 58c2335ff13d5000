"""Toys of the CAM family: fixtures A and C of methods.md, networks of several layouts, and pytorch-grad-cam's maps."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saliometer.types import Batch, Model
from toys import CamHead, model_of

FIXTURE_A = model_of(CamHead(torch.tensor([1.0, -1.0]), pooled=True), "features")
FIXTURE_C = model_of(CamHead(torch.tensor([[[1.0, 0.0], [0.0, -1.0]]]), pooled=False), "features")
IMAGE_A = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]], [[4.0, 0.0], [0.0, 0.0]]]])
IMAGE_C = torch.tensor([[[[2.0, 1.0], [0.0, 1.0]]]])


def gap_cnn(classes: int = 3, bias: bool = True, seed: int = 0, stride: int = 2) -> nn.Sequential:
    """Two convolutions with ReLUs, a mean over places and a linear layer; '3' gives the feature maps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 5, 3, stride, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, classes, bias=bias),
        )  # fmt: skip


class ChannelsLast(nn.Module):
    """Patches of 2 x 2, a normalisation that gives (N, h, w, k), and a nonlinear head."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, channels, 2, 2), nn.LayerNorm(channels)
        self.head = nn.Linear(channels, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.norm(self.patches(images).permute(0, 2, 3, 1)).tanh().square().mean((1, 2)))


class Tokens(nn.Module):
    """Patches of 2 x 2 behind a class token, (N, 1 + h w, k), with one attention that reads the class token out."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, channels, 2, 2), nn.LayerNorm(channels)
        self.token = nn.Parameter(torch.randn(1, 1, channels))
        self.attention = nn.MultiheadAttention(channels, 2, batch_first=True)
        self.head = nn.Linear(channels, 3)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(8 * (images - 0.5)).flatten(2).transpose(1, 2)
        tokens = torch.cat((self.token.expand(len(images), -1, -1), patches), 1)
        normed = self.norm(tokens)
        return self.head((tokens + self.attention(normed, normed, normed, need_weights=False)[0])[:, 0])


def made(kind: type[nn.Module], cam_layer: str = "norm", seed: int = 0, dtype: torch.dtype = torch.float32) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model_of(kind().to(dtype), cam_layer)


def scaled(maps: Tensor) -> Tensor:
    """Each map from 0 to 1, as pytorch-grad-cam gives it."""
    low, high = maps.amin((-2, -1), keepdim=True), maps.amax((-2, -1), keepdim=True)
    return (maps - low) / (high - low)


def theirs(name: str, model: Model, batch: Batch, reshape: Any = None) -> Tensor:
    """(N, H, W): pytorch-grad-cam 1.5.7's map, scaled from 0 to 1."""
    library = pytest.importorskip("pytorch_grad_cam", reason="pytorch-grad-cam is not installed (pip install grad-cam)")
    layer = model.net.get_submodule(model.cam_layer)
    targets = [library.utils.model_targets.ClassifierOutputTarget(int(target)) for target in batch.targets]
    with getattr(library, name)(model.net, [layer], reshape_transform=reshape) as cam:
        return torch.from_numpy(cam(batch.images.clone().requires_grad_(), targets))


def assert_parity(name: str, maps: Tensor, model: Model, batch: Batch, reshape: Any = None, atol: float = 2e-5) -> None:
    """Ours, scaled as theirs is, for the images whose map is not flat (two at least)."""
    wanted, maps = theirs(name, model, batch, reshape), maps[:, 0]
    high, low = maps.amax((1, 2)), maps.amin((1, 2))
    alive = high - low > 1e-3 * high
    assert alive.sum() >= 2
    torch.testing.assert_close(scaled(maps)[alive], wanted[alive].to(maps.dtype), rtol=0, atol=atol)
