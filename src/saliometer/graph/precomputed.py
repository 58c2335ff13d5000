"""On a CPU: norms are multiplied into the weights before them, and what follows a convolution is done while it is made.

That takes a look at all weights, so it is kept until one of them has been written to.
"""

from typing import Any

import torch
from torch import Tensor

from saliometer.fused import onednn
from saliometer.graph.joined import Joined, Norms


class Ready:
    """What was made of weights as they were; a pass keeps to it, whatever another thread makes anew meanwhile."""

    def __init__(self, state: list[tuple[int, int]], scale: Tensor, shift: Tensor) -> None:
        self.state, self._scale, self._shift = state, scale, shift
        self._made: dict[int, tuple[Tensor, Tensor]] = {}  # weights and bias of each joined step

    def run(self, step: Joined, values: dict[int, Any]) -> Tensor:
        given, added = values[step.conv.inputs[0]], None if step.added is None else values[step.added]
        if step.number not in self._made:
            weight = step.weight * self._scale[step.channels, None, None, None]
            if given.is_contiguous(memory_format=torch.channels_last):  # else what comes out would be that
                weight = onednn.laid_out(weight, step.geometry, given.shape)
            self._made[step.number] = weight, self._shift[step.channels].clone()
        return onednn.convolved(given, *self._made[step.number], step.geometry, step.low, step.high, added)


class Precomputed:
    """Runs joined convolutions with weights that are kept ready."""

    def __init__(self, norms: Norms) -> None:
        self._norms = norms
        self._ready: Ready | None = None

    def forget(self) -> None:
        self._ready = None

    def begin(self) -> Ready:
        state = [(tensor.data_ptr(), tensor._version) for tensor in self._norms.read]
        ready = self._ready
        if ready is None or ready.state != state:
            ready = self._ready = Ready(state, *self._norms.now())
        return ready
