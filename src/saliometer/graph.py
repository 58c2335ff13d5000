"""A network as a list of operations, for methods that walk it backwards by rules."""

from collections.abc import Callable

from torch import Tensor, nn


class Graph:
    pass


def captured(net: nn.Module, logits: Callable[[Tensor], Tensor], images: Tensor) -> Graph:
    raise NotImplementedError
