"""What a network is made of: every attribute of its modules, to tell later whether something was put in its place."""

import weakref
from collections.abc import Sequence
from contextlib import suppress
from types import MethodType
from typing import Any

from torch import nn

PLAIN = (bool, int, float, complex, str, bytes, type(None))
DEEP = 4  # lists in lists that are looked into


class Made:
    """Of modules as they are now. What is written into their tensors does not count."""

    def __init__(self, modules: Sequence[nn.Module]) -> None:
        self._alive: list[weakref.ref[Any]] = []  # while these live, nothing else can have their ids
        self._marks = [self._mark(vars(module)) for module in modules]

    def is_still(self, modules: Sequence[nn.Module]) -> bool:
        return self._marks == Made(modules)._marks and all(one() is not None for one in self._alive)

    def _mark(self, value: Any, deep: int = DEEP) -> Any:
        """Of plain values and what lists hold of them, themselves; of anything else, which it is."""
        if isinstance(value, PLAIN):
            return type(value), value
        if isinstance(value, tuple | list | dict) and deep:
            held = value.items() if isinstance(value, dict) else value
            return type(value), [self._mark(one, deep - 1) for one in held]
        if isinstance(value, MethodType):  # made anew each time one looks at it
            return id(value.__self__), id(value.__func__)
        with suppress(TypeError):
            self._alive.append(weakref.ref(value))
        return id(value)
