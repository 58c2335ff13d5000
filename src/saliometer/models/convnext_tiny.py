"""A ConvNeXt for small images (Liu et al., 2022): torchvision's, three stages of 16, 8 and 4 places a side."""

from typing import Any

from torch import nn
from torchvision.models import ConvNeXt
from torchvision.models.convnext import CNBlockConfig

from saliometer.registry import model

GRID, STAGES = 16, [CNBlockConfig(64, 128, 2), CNBlockConfig(128, 256, 4), CNBlockConfig(256, None, 2)]
SCALE = 0.1  # of a fresh block; torchvision's 1e-6 is for long trainings


@model()
def convnext_tiny(classes: int, channels: int, *, side: int = 64) -> nn.Module:
    """A ConvNeXt of 2, 4 and 2 blocks, 64 to 256 wide, on a grid of 16 x 16 patches."""
    if side % GRID or side < GRID:
        raise ValueError(f"convnext_tiny takes sides that are a multiple of {GRID}: {side} came")
    patch = side // GRID
    net: Any = ConvNeXt(STAGES, stochastic_depth_prob=0.1, layer_scale=SCALE, num_classes=classes)
    stem = nn.Conv2d(channels, STAGES[0].input_channels, patch, stride=patch)
    nn.init.trunc_normal_(stem.weight, std=0.02)
    net.features[0][0] = stem
    return net  # type: ignore[no-any-return]
