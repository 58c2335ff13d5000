"""Where passes run: the device by name, how precise, and how many images at once."""

import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn

from saliometer.registry import unknown

NAMES = ("auto", "cpu", "cuda")
TF32 = False  # on a GPU, products of 10 bits: nobody but a benchmark sets it
KINDS = ("cpu", "cuda")
BATCH = {"cpu": 64, "cuda": 2048}  # the fastest on the TextBox networks; memory backs off from there


def find(name: str) -> torch.device:
    """The device of that name; 'auto' takes a GPU where there is one."""
    kind = name.split(":")[0]
    if kind == "mps":
        raise ValueError(
            "device 'mps' is not supported: scores need float64, which Apple's GPUs lack. Use --device cpu"
        )
    if kind not in NAMES:
        raise LookupError(unknown("device", name, NAMES))
    if kind == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        number = name.partition(":")[2] or "0"
        if not number.isdecimal() or int(number) >= count:
            raise ValueError(
                f"no such device: '{name}'; this machine has {count} CUDA devices. Use --device cpu or auto"
            )
    return torch.device(name)


def check_batch(size: int) -> None:
    if size < 0:
        raise ValueError(f"batch size is {size}: wanted 1 or more, or 0 to find it")


_plain: weakref.WeakSet[nn.Module] = weakref.WeakSet()  # networks that were seen to fail with channels last


def memory_format(device: torch.device, net: nn.Module | None = None) -> torch.memory_format:
    """Channels last is 1.2 to 1.8 times as fast on the CPU and slower on an H200 in float32 (docs/speed.md)."""
    last = device.type == "cpu" and (net is None or net not in _plain)
    return torch.channels_last if last else torch.contiguous_format


def wants_plain(error: RuntimeError, net: nn.Module) -> bool:
    """Whether a network failed because it looks at its values by `view`, which is for the plain layout; remembered."""
    if "view size is not compatible" in str(error):
        _plain.add(net)
    return net in _plain


@contextmanager
def exact() -> Iterator[None]:
    """Full float32 and repeatable kernels for the passes inside; the caller's settings come back."""
    if any(torch.is_autocast_enabled(kind) for kind in KINDS):
        with ExitStack() as full:
            for kind in KINDS:
                full.enter_context(torch.autocast(kind, enabled=False))
            with exact():
                yield
        return
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, matmul.allow_tf32
    if before == (TF32, True, False, TF32):  # inside another such block
        yield
        return
    cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, matmul.allow_tf32 = TF32, True, False, TF32
    try:
        yield
    finally:
        cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, matmul.allow_tf32 = before


def out_of_memory(error: Exception) -> bool:
    return any(words in str(error) for words in ("out of memory", "can't allocate memory"))
