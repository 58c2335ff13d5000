"""A small vision transformer (Dosovitskiy et al., 2021): torchvision's, on 8x8 patches of a 64x64 image."""

from torch import nn
from torchvision.models import VisionTransformer

from saliometer.registry import model

PATCH, DEPTH, HEADS, WIDTH = 8, 6, 4, 192


@model()
def vit_small(classes: int, channels: int) -> nn.Module:
    """A vision transformer of 6 layers, 4 heads and width 192 on 64 patches of 8x8, for 64x64 images."""
    net = VisionTransformer(64, PATCH, DEPTH, HEADS, WIDTH, 4 * WIDTH, num_classes=classes)
    net.conv_proj = nn.Conv2d(channels, WIDTH, PATCH, stride=PATCH)
    nn.init.trunc_normal_(net.heads.head.weight, std=0.02)  # torchvision's is 0, with no gradient behind it at first
    return net  # type: ignore[no-any-return]
