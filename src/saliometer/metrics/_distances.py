"""How far apart two maps of one image are: maps (N, C, H, W), and others of theirs, (..., N, C, H, W)."""

from collections.abc import Callable

import torch
from torch import Tensor

from saliometer.correlation import mean_ranks


def norms(maps: Tensor) -> Tensor:
    """(..., N) float64: Euclidean."""
    found: Tensor = torch.linalg.vector_norm(maps.flatten(-3), dim=-1, dtype=torch.float64)
    return found


def absolute(maps: Tensor, others: Tensor) -> Tensor:
    return norms(others - maps)


def relative(maps: Tensor, others: Tensor) -> Tensor:
    """To the size of the first."""
    return norms(others - maps) / norms(maps)


def cosine(maps: Tensor, others: Tensor) -> Tensor:
    """1 - the cosine of the angle between them."""
    return 1 - _cosine(maps.flatten(-3).double(), others.flatten(-3).double())


def spearman(maps: Tensor, others: Tensor) -> Tensor:
    """1 - their rank correlation."""
    one, other = (_ranks(some.flatten(-3)) for some in (maps, others))
    return 1 - _cosine(one - one.mean(-1, keepdim=True), other - other.mean(-1, keepdim=True))


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relative": relative,
    "absolute": absolute,
    "cosine": cosine,
    "spearman": spearman,
}


def distance(name: str, maps: Tensor, others: Tensor) -> Tensor:
    """(..., N) float64: exactly 0 for the same map, NaN where it is undefined or a map is not finite."""
    same = (maps == others).flatten(-3).all(-1)
    return DISTANCES[name](maps, others).masked_fill(same, 0.0)


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(-1) / (one.norm(dim=-1) * other.norm(dim=-1))  # type: ignore[no-any-return]


def _ranks(rows: Tensor) -> Tensor:
    return mean_ranks(rows.flatten(0, -2)).view(rows.shape)
