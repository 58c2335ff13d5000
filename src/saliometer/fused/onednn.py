"""On a CPU: a convolution and what follows it as one operation of oneDNN's, which comes with PyTorch.

torch.compile's own code calls these operations, but they are not part of PyTorch's public interface: whoever uses them
compares what they give, and does without where they fail.
"""

import platform
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

MACHINES = ("x86_64", "AMD64")  # on which it was seen to be faster


class Geometry(NamedTuple):
    """Of a convolution, in the order in which oneDNN's operations take it."""

    padding: Sequence[int]
    stride: Sequence[int]
    dilation: Sequence[int]
    groups: int


def fits(images: Tensor) -> bool:
    here = images.device.type == "cpu" and platform.machine() in MACHINES
    return here and images.dtype == torch.float32 and torch.backends.mkldnn.is_available()


def laid_out(weight: Tensor, how: Geometry, images: Sequence[int]) -> Tensor:
    """Weights in the order in which oneDNN reads them for images of this shape; others may reorder them anew."""
    return torch.ops.mkldnn._reorder_convolution_weight(weight, *how, list(images))  # type: ignore[no-any-return]


def convolved(
    given: Tensor, weight: Tensor, bias: Tensor, how: Geometry, low: float, high: float, added: Tensor | None
) -> Tensor:
    """A convolution, added to and clamped. Of what is not a number a clamp makes 0."""
    bounds = [] if high == torch.inf else [low, high]
    bend = "none" if low == -torch.inf else "hardtanh" if bounds else "relu"
    convolution = torch.ops.mkldnn._convolution_pointwise
    if added is not None and added.shape[2:].numel() == 1:  # PyTorch 2.11 fails: could not create a memory
        return convolution(given, weight, bias, *how, "none", [], "").add_(added).clamp_(low, high)  # type: ignore[no-any-return]
    if added is None:
        return convolution(given, weight, bias, *how, bend, bounds, "")  # type: ignore[no-any-return]
    bend_after = None if bend == "none" else bend
    return convolution.binary(given, added, weight, bias, *how, "add", None, bend_after, bounds, "")  # type: ignore[no-any-return]
