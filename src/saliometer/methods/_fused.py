"""Kernels of our own for a GPU: what PyTorch does in many looks at memory, in one.

Where they do not fit or cannot be compiled, PyTorch's own operations give the same numbers.
"""

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor


def kernels(*values: Tensor) -> Any:
    """The kernels, if these are values that they can work on."""
    fitting = all(value.is_cuda and value.dtype == torch.float32 for value in values)
    return _compiled() if fitting else None


@cache
def _compiled() -> Any:
    """Found once: they are made for this GPU when they are first used, which takes seconds, and kept on disk."""
    try:
        from saliometer.methods import _triton

        one = torch.ones(1, 1, 4, 4, device="cuda")
        _triton.divided(one, one, one, one[0, 0, 0, 0], 1.0, 0.0, 0.0)
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        warnings.warn(f"methods run slower than they could, for Triton does not ({first})", stacklevel=2)
        return None
    return _triton
