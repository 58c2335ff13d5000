"""On a CPU: norms are multiplied into the weights before them, and what follows a convolution is done while it is made.

That takes a look at all weights, so it is kept until one of them has been written to.
"""

from typing import Any

import torch
from torch import Tensor

from saliometer.fused import onednn
from saliometer.graph.joined import Joined, Norms


class Precomputed:
    """Runs joined convolutions with weights that are kept ready."""

    def __init__(self, norms: Norms) -> None:
        self._norms = norms
        self._state: list[tuple[int, int]] = []
        self._ready: dict[int, tuple[Tensor, Tensor]] = {}  # weights and bias of each joined step

    def forget(self) -> None:
        self._state = []

    def begin(self) -> None:
        state = [(tensor.data_ptr(), tensor._version) for tensor in self._norms.read]
        if state != self._state:
            self._state = state
            self._ready.clear()
            self._scale, self._shift = self._norms.now()

    def run(self, step: Joined, values: dict[int, Any]) -> Tensor:
        given, added = values[step.conv.inputs[0]], None if step.added is None else values[step.added]
        if step.number not in self._ready:
            scale = self._scale[step.channels, None, None, None]
            weight = step.weight * scale
            if given.is_contiguous(memory_format=torch.channels_last):  # else what comes out would be that
                weight = onednn.laid_out(weight, step.geometry, given.shape)
            self._ready[step.number] = weight, self._shift[step.channels].clone()
        return onednn.convolved(given, *self._ready[step.number], step.geometry, step.low, step.high, added)
