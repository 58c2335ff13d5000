"""A Swin transformer for small images (Liu et al., 2021): torchvision's, three stages of 16, 8 and 4 places a side."""

from typing import Any

from torch import nn
from torchvision.models import SwinTransformer

from saliometer.registry import model

GRID, WIDTH, DEPTHS, HEADS, WINDOW = 16, 64, [2, 4, 2], [2, 4, 8], [4, 4]


@model()
def swin_tiny(classes: int, channels: int, *, side: int = 64) -> nn.Module:
    """A Swin transformer of 2, 4 and 2 blocks, 64 to 256 wide, with windows of 4 x 4 on a grid of 16 x 16 patches."""
    if side % GRID or side < GRID:
        raise ValueError(f"swin_tiny takes sides that are a multiple of {GRID}: {side} came")
    patch = side // GRID
    net: Any = SwinTransformer(
        [patch, patch], WIDTH, DEPTHS, HEADS, WINDOW, stochastic_depth_prob=0.1, num_classes=classes
    )
    if channels != 3:
        net.features[0][0] = nn.Conv2d(channels, WIDTH, patch, stride=patch)
    return net  # type: ignore[no-any-return]
