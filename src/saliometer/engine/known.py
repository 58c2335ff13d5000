"""What one image tells about a network: found once, and kept while the network stays as it is."""

import weakref
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from torch import Tensor, nn

from saliometer.graph import UnfitError, state_of

Fact = TypeVar("Fact")
_shelf: weakref.WeakKeyDictionary[nn.Module, tuple[Any, Any, dict[str, Any]]] = weakref.WeakKeyDictionary()


class Known:
    """Facts about a network for images like this one, (1, C, H, W).

    To look whether it is still the same takes a while. Who has it `believed` at first gets to work sooner, asks `true`
    while a GPU is busy, and begins again where it is not.
    """

    def __init__(
        self, net: nn.Module, image: Tensor, *, believed: bool = False, before: Callable[[], None] = lambda: None
    ) -> None:
        self.net, self._like = net, (image.shape, image.dtype, image.device)
        self._before = before  # called before a fact is found
        like, self._state, self._facts = _shelf.get(net, (None, None, {}))
        if like != self._like or not (believed or self.true):
            self._state, self._facts = state_of(net), {}
            self.true = True
            _shelf[net] = self._like, self._state, self._facts

    @cached_property
    def true(self) -> bool:
        """Whether the network is what it was when the facts were found."""
        return bool(state_of(self.net) == self._state)

    def confirm(self) -> None:
        if not self.true:
            raise UnfitError(f"{type(self.net).__name__} was changed since it was last seen: begin again")

    def __call__(self, name: str, find: Callable[[], Fact]) -> Fact:
        """The fact of that name, which takes some passes to find for the first time."""
        if name not in self._facts:
            self.confirm()  # a new fact must go with the old ones
            self._before()
            self._facts[name] = find()
        return self._facts[name]  # type: ignore[no-any-return]
