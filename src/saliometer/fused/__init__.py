"""Kernels of our own for a GPU: what PyTorch does in many looks at memory, in one.

Where they do not fit or cannot be compiled, PyTorch's own operations give the same numbers.
"""

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor


def kernels(*values: Tensor) -> Any:
    """The module `compiled`, if these are numbers that it can work on; else None."""
    fitting = all(value.is_cuda and value.dtype in (torch.float32, torch.int64) for value in values)
    here = fitting and all(value.get_device() == torch.cuda.current_device() for value in values)
    return _compiled() if here else None


@cache
def _compiled() -> Any:
    """Found out once; they are made for the GPU at hand when they are first used, which takes seconds, and kept."""
    try:
        from saliometer.fused import compiled

        compiled.uniform(torch.zeros(1, dtype=torch.int64, device="cuda"), 1)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        warnings.warn(f"Triton does not run here, so some work takes longer ({first})", stacklevel=2)
        return None
    return compiled
