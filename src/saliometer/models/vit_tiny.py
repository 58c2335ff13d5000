"""A vision transformer for small images (Dosovitskiy et al., 2021): torchvision's, on 8 x 8 patches of any side."""

from functools import partial

from torch import nn
from torchvision.models import VisionTransformer
from torchvision.models.vision_transformer import ConvStemConfig

from saliometer.registry import model, one_of

GRID, DEPTH, HEADS, WIDTH = 8, 9, 3, 192
STEMS = ("patch", "conv")


@model()
def vit_tiny(classes: int, channels: int, *, side: int = 64, stem: str = "patch") -> nn.Module:
    """A vision transformer of 9 layers, 3 heads and width 192 on 8 x 8 patches; `stem` is how they are read.

    `patch` is one linear layer, `conv` convolutions in steps of 2, which learn from fewer images (Xiao et al., 2021).
    """
    one_of("stem", stem, STEMS)
    if side % GRID or side < 2 * GRID:
        raise ValueError(f"vit_tiny takes sides of {2 * GRID} or more that are a multiple of {GRID}: {side} came")
    build = partial(VisionTransformer, side, side // GRID, DEPTH, HEADS, WIDTH, 4 * WIDTH, num_classes=classes)
    if stem == "patch":
        net = build()
        net.conv_proj = _like_torchvisions(nn.Conv2d(channels, WIDTH, side // GRID, stride=side // GRID))
    else:
        net = build(conv_stem_configs=_steps(side // GRID))
        first = net.conv_proj[0][0]
        net.conv_proj[0][0] = nn.Conv2d(channels, first.out_channels, 3, first.stride, padding=1, bias=False)
    nn.init.trunc_normal_(net.heads.head.weight, std=0.02)  # torchvision's is 0, with no gradient behind it at first
    return net  # type: ignore[no-any-return]


def _like_torchvisions(layer: nn.Conv2d) -> nn.Conv2d:
    fan_in = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
    nn.init.trunc_normal_(layer.weight, std=fan_in**-0.5)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def _steps(patch: int) -> list[ConvStemConfig]:
    """3x3 convolutions, the first of them in steps that multiply to the patch."""
    strides = []
    while patch > 1:
        stride = 2 if patch % 2 == 0 else patch
        strides.append(stride)
        patch //= stride
    widths = [48 * 2**place for place in range(len(strides))]
    return [ConvStemConfig(width, 3, stride) for width, stride in zip(widths, strides, strict=True)]
