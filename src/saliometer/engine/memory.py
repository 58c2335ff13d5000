"""How many images fit into one pass: from what one image takes, and the memory there is or that the user allows."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from saliometer.engine.device import BATCH

HELD = 3  # what a backward pass holds at once, in multiples of what one forward pass makes
TILE = 64  # larger batches are multiples of it, for kernels of a GPU work on whole tiles
GIB = 2**30
QUICK, FEW = GIB // 2, 8  # a CPU's passes get slower once they make more than that, unless they are of fewer images


def fitting(made: int, device: torch.device, limit: float = 0.0) -> int:
    """The batch size for images whose pass makes that many bytes; `limit` is in GiB, 0 takes what is free."""
    if limit < 0:
        raise ValueError(f"memory is {limit} GiB: wanted more than 0, or 0 to find it")
    room = limit * GIB if limit else free(device)
    most = BATCH[device.type] if device.type == "cuda" else min(BATCH["cpu"], max(FEW, QUICK // max(made, 1)))
    size = max(1, min(most, int(room // (HELD * max(made, 1)))))
    return size - size % TILE if size > TILE else size


def at_once(run: Callable[[Tensor], object], images: Tensor) -> int:
    """How many of these images go through `run` in one pass where they lie."""
    return fitting(made(run, images[:1]), images.device)


def made(run: Callable[[Tensor], object], values: Tensor) -> int:
    """The bytes of all that a pass computes, without gradients."""
    counter = _Bytes()
    with torch.no_grad(), counter:
        run(values)
    return counter.made


def free(device: torch.device) -> float:
    """Bytes that may be taken: most of a GPU's free memory, half of the machine's."""
    if device.type == "cuda":
        return 0.8 * _beside(device, torch.cuda.memory_allocated(device) // GIB)
    try:
        told = Path("/proc/meminfo").read_text(encoding="ascii").partition("MemAvailable:")[2]
        return 0.5 * 1024 * int(told.split(maxsplit=1)[0])
    except (OSError, IndexError, ValueError):
        return 2.0 * GIB  # not Linux: what any machine has


@lru_cache(maxsize=64)
def _beside(device: torch.device, gib: int) -> int:
    """The free bytes of a GPU on which this process holds so many GiB; asked once for each, for the driver is slow.

    Where other processes took memory since, passes back off.
    """
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # PyTorch keeps it at hand
    return torch.cuda.mem_get_info(device)[0] + unused


class _Bytes(TorchDispatchMode):
    """Adds up the memory of everything that is computed."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        for result in results if isinstance(results, tuple | list) else (results,):
            if isinstance(result, Tensor):
                self.made += result.nbytes
        return results
