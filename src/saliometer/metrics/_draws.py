"""Seeds for draws: by image, purpose and number alone, so that every method meets the same ones in any batch."""

import torch
from torch import Tensor

from saliometer.seeds import fork, forks


def drawn(seeds: Tensor, purpose: str, ks: range) -> Tensor:
    """(len(ks) N,) int64: a seed for every image in each draw, one draw after the other."""
    each = torch.tensor([fork(purpose, k) for k in ks]).to(seeds.device, non_blocking=True)
    return forks(each[:, None], seeds).flatten()
