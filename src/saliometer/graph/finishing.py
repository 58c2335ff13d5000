"""On a GPU: what follows a convolution is one look at what it gave out, and 1x1 convolutions are matrix products."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.fused import kernels
from saliometer.graph.joined import Joined, Norms


class Finishing:
    """Runs joined convolutions, with norms as they are now."""

    def __init__(self, norms: Norms) -> None:
        self._norms = norms

    def forget(self) -> None:
        """Nothing is kept."""

    def begin(self) -> "Finishing":
        self._scale, self._shift = self._norms.now()
        return self

    def run(self, step: Joined, values: dict[int, Any]) -> Tensor:
        given, weight, how = values[step.conv.inputs[0]], step.weight, step.geometry
        if how.padding != (0, 0) or how.groups != 1 or weight.shape[2:] != (1, 1) or how.stride != (1, 1):
            made = F.conv2d(given, weight, None, how.stride, how.padding, how.dilation, how.groups)
        elif given.is_contiguous(memory_format=torch.channels_last):
            rows = given.movedim(1, -1)
            made = (rows.flatten(0, 2) @ weight.flatten(1).t()).unflatten(0, rows.shape[:3]).movedim(-1, 1)
        else:
            made = (weight.flatten(1) @ given.flatten(2)).unflatten(2, given.shape[2:])
        added = None if step.added is None else values[step.added]
        return finished(made, self._scale[step.channels], self._shift[step.channels], added, step.low, step.high)


def finished(made: Tensor, scale: Tensor, shift: Tensor, added: Tensor | None, low: float, high: float) -> Tensor:
    """What a convolution gave out, scaled and shifted, added to, and clamped; in its own memory."""
    given = (made, scale, shift) if added is None else (made, scale, shift, added)
    quick = kernels(*given)
    dense = made.is_contiguous() or made.is_contiguous(memory_format=torch.channels_last)
    if quick and dense and (added is None or added.stride() == made.stride()):
        return quick.finished(made, scale, shift, added, low, high)  # type: ignore[no-any-return]
    made.mul_(scale.view(-1, 1, 1)).add_(shift.view(-1, 1, 1))
    if added is not None:
        made.add_(added)
    return made.clamp_(low, high)
