"""Networks that can be trained on images: torchvision's at 224 pixels, and small ones for 32 to 64."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import torchvision
from torch import nn
from torchvision.models.swin_transformer import ShiftedWindowAttention, SwinTransformer

from saliometer import registry
from saliometer.registry import Entry, Facts, Spec, one_of

LARGE, SMALL = 224, 64  # the sides that networks were made for


@dataclass(frozen=True)
class Arch:
    """One network; a classifier's head sits at `head`."""

    name: str
    build: Callable[..., nn.Module]  # (classes, side, ...) -> a fresh network
    head: str
    resize: int = 0  # the shorter side of pictures before 224 pixels are cut out of them; 0 for a small network
    multiple: int = 1  # of which a side must be one
    smallest: int = 32
    convolutions: bool = True  # so that channels last is the faster order

    @property
    def large(self) -> bool:
        return self.resize > 0

    def side_for(self, pictures: int) -> int:
        """The usual side for pictures of some side: 224, or for a small network theirs, up to 64."""
        if self.large:
            return LARGE
        return max(self.smallest, min(SMALL, -(-pictures // self.multiple) * self.multiple))

    def resize_for(self, side: int) -> int:
        """The shorter side before the middle is cut out."""
        return round(side * self.resize / LARGE) if self.large else side

    def check_side(self, side: int) -> None:
        if side < self.smallest or side % self.multiple:
            multiples = f", a multiple of {self.multiple}" if self.multiple > 1 else ""
            raise ValueError(f"{self.name} on images of {side} pixels: wanted {self.smallest} or more{multiples}")


def _torchvision(name: str, classes: int, side: int, **options: Any) -> nn.Module:
    return torchvision.models.get_model(name, weights=None, num_classes=classes, **options)  # type: ignore[no-any-return]


def _vit_b_16(classes: int, side: int) -> nn.Module:
    return _torchvision("vit_b_16", classes, side, image_size=side)


def _swin_t(classes: int, side: int, *, window: int = 7) -> nn.Module:
    """Windows wider than a stage are as wide as it, as in the code of Swin and iBOT; torchvision's would be padded."""
    if window < 2 or window > side // 4:
        raise ValueError(f"swin_t(window={window}) on images of {side} pixels: wanted 2 to {side // 4}")
    if window == 7:
        return _torchvision("swin_t", classes, side)
    net = SwinTransformer([4, 4], 96, [2, 2, 6, 2], [3, 6, 12, 24], [window, window], stochastic_depth_prob=0.1,
                          num_classes=classes)  # fmt: skip
    for stage in range(4):
        places = math.ceil(side / 4 / 2**stage)
        for block in net.features[2 * stage + 1] if places < window else ():
            block.attn = _narrower(block.attn, places)
    return net  # type: ignore[no-any-return]


def _narrower(attention: ShiftedWindowAttention, window: int) -> nn.Module:
    dim = attention.qkv.in_features
    return ShiftedWindowAttention(dim, [window, window], [0, 0], attention.num_heads)  # type: ignore[no-any-return]


def _small(name: str, classes: int, side: int, **options: Any) -> nn.Module:
    sided = {} if name == "resnet20" else {"side": side}
    return registry.models[name].function(classes, 3, **sided, **options)  # type: ignore[no-any-return]


ARCHS = {
    one.name: one
    for one in (
        Arch("resnet20", partial(_small, "resnet20"), "linear", smallest=8),
        Arch("convnext_tiny", partial(_small, "convnext_tiny"), "classifier.2", multiple=16),
        Arch("vit_tiny", partial(_small, "vit_tiny"), "heads", multiple=8, smallest=16, convolutions=False),
        Arch("swin_tiny", partial(_small, "swin_tiny"), "head", multiple=16, convolutions=False),
        Arch("resnet50", partial(_torchvision, "resnet50"), "fc", 224),
        Arch("convnext_small", partial(_torchvision, "convnext_small"), "classifier.2", 232),
        Arch("vit_b_16", _vit_b_16, "heads", 256, multiple=16, convolutions=False),
        Arch("swin_t", _swin_t, "head", 232, convolutions=False),
    )
}


def arch_given(text: str) -> tuple[Arch, Spec]:
    """`vit_tiny`, or one with parameters, `vit_tiny(stem=conv)`, `swin_t(window=14)`."""
    spec = Spec.parse(text)
    arch = ARCHS[one_of("architecture", spec.name, ARCHS)]
    if "side" in dict(spec.params):
        raise ValueError(f"'{spec}': the side is given beside the architecture, with --side")
    small = not arch.large
    spec.check("architecture", registry.models[arch.name] if small else Entry(arch.name, arch.build, Facts()))
    return arch, spec


def built(spec: Spec, classes: int, side: int, hidden: tuple[int, ...] = ()) -> nn.Module:
    """A fresh network, its weights from the global generator; `hidden` are layers of its head before the last."""
    arch = ARCHS[spec.name]
    arch.check_side(side)
    net = arch.build(classes, side, **dict(spec.params))
    old = net.get_submodule(arch.head)
    width = next(module.in_features for module in old.modules() if isinstance(module, nn.Linear))
    if hidden:
        parent, _, name = arch.head.rpartition(".")
        setattr(net.get_submodule(parent), name, _head(width, classes, hidden))
    elif arch.name == "vit_b_16":  # torchvision's is 0, with no gradient behind it at first
        nn.init.trunc_normal_(net.get_parameter("heads.head.weight"), std=0.02)
    return net


def _head(width: int, classes: int, hidden: tuple[int, ...]) -> nn.Sequential:
    widths = [width, *hidden, classes]
    layers: list[nn.Module] = []
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def in_head(arch: Arch, key: str) -> bool:
    """Whether a weight belongs to the head."""
    return key == arch.head or key.startswith(f"{arch.head}.")
