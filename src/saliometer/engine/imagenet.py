"""ImageNet weights for a network whose features are frozen: a file that the user gives, or torchvision's cache."""

import hashlib
import re
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saliometer.engine.weights import read
from saliometer.registry import Spec

SCRATCH = "trained from scratch, with batch norm"  # what a card says of features that are not ImageNet's
CACHED = "vgg16-*.pth"  # as torchvision names what it downloads; nothing is downloaded here


def features(network: Spec, file: Path | None) -> Path | None:
    """Where a network's frozen features come from; None for one that is trained as a whole."""
    if not dict(network.params).get("frozen"):
        if file:
            raise ValueError(
                f"weights '{file}' are for frozen features, and {network} is trained as a whole: leave them out, or "
                "ask for vgg16(frozen=true)"
            )
        return None
    if file and not file.is_file():
        raise ValueError(f"there are no weights at '{file}': wanted a file of VGG16's, as torchvision has them")
    known = cached()
    if not file and not known:
        raise ValueError(
            f"{network} needs ImageNet weights of VGG16, and torchvision's cache holds none: give a file with "
            "--weights, or ask for vgg16, which has batch norm and is trained from scratch"
        )
    return file or known[0]


def cached() -> list[Path]:
    """Weights of VGG16 in torchvision's cache."""
    return sorted((Path(torch.hub.get_dir()) / "checkpoints").glob(CACHED))


def fill(net: nn.Module, network: Spec, file: Path | None) -> dict[str, Any]:
    """Put the convolutions of a file in their places; returns what a card says of it."""
    if network.name != "vgg16":
        return {}
    if file is None:
        return {"features": SCRATCH}
    state = read(file)
    held = [
        name.removesuffix(".weight") for name, value in state.items() if name.endswith("weight") and value.ndim == 4
    ]
    held.sort(key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
    wanted = [layer for layer in net.modules() if isinstance(layer, nn.Conv2d)]
    shapes = [tuple(state[f"{name}.weight"].shape) for name in held], [tuple(one.weight.shape) for one in wanted]
    normed = any(name.endswith("running_mean") for name in state)  # its convolutions alone would mean something else
    if shapes[0] != shapes[1] or normed:
        raise ValueError(
            f"weights '{file}' hold {len(held)} convolutions{' with batch norm' * normed}, the network has "
            f"{len(wanted)}, or their shapes differ: wanted VGG16 without batch norm, as torchvision has it, for three "
            "channels"
        )
    with torch.no_grad():
        for name, layer in zip(held, wanted, strict=True):
            layer.weight.copy_(state[f"{name}.weight"])
            if layer.bias is not None:
                layer.bias.copy_(state[f"{name}.bias"])
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"features": f"of ImageNet, frozen: {file.name}, sha256 {digest}"}
