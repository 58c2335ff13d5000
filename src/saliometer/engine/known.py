"""What one image tells about a network: found once, and kept while the network stays as it is."""

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor, nn

from saliometer.graph import state_of

Fact = TypeVar("Fact")
_shelf: weakref.WeakKeyDictionary[nn.Module, tuple[Any, dict[str, Any]]] = weakref.WeakKeyDictionary()


class Known:
    """Facts about a network for images like this one, (1, C, H, W)."""

    def __init__(self, net: nn.Module, image: Tensor) -> None:
        key = (image.shape, image.dtype, image.device, state_of(net))
        if net not in _shelf or _shelf[net][0] != key:
            _shelf[net] = key, {}
        self._facts = _shelf[net][1]

    def __call__(self, name: str, find: Callable[[], Fact]) -> Fact:
        """The fact of that name, which takes some passes to find for the first time."""
        if name not in self._facts:
            self._facts[name] = find()
        return self._facts[name]  # type: ignore[no-any-return]
