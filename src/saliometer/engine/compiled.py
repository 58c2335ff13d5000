"""Networks as they were written: what torch.compile made of them has no place for hooks and cannot be captured."""

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import RLock
from typing import Any

from torch import nn

_alone: weakref.WeakKeyDictionary[nn.Module, AbstractContextManager[Any]] = weakref.WeakKeyDictionary()


def inner(net: nn.Module) -> nn.Module:
    """The network that torch.compile was given."""
    found = getattr(net, "_orig_mod", net)
    return found if isinstance(found, nn.Module) else net


def write_out(net: nn.Module) -> list[tuple[nn.Module, dict[str, object]]]:
    """Every module runs as it was written, also one that was compiled in place; what they had before."""
    changed = []
    for module in net.modules():
        instead: dict[str, object] = {"_compiled_call_impl": None} if module._compiled_call_impl is not None else {}
        if (written := inner(module)) is not module:
            instead["forward"] = written.__call__
        if instead:
            changed.append((module, {name: module.__dict__[name] for name in instead}))
            module.__dict__.update(instead)
    return changed


@contextmanager
def as_written(net: nn.Module) -> Iterator[None]:
    """One thread at a time, for another would hear what is sent through the network for the first."""
    with _alone.setdefault(net, RLock()):
        changed = write_out(net)
        try:
            yield
        finally:
            for module, before in changed:
                module.__dict__.update(before)
