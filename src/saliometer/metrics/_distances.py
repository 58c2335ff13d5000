"""How far apart two maps of one image are."""

from collections.abc import Callable

import torch
from torch import Tensor

from saliometer.correlation import mean_ranks


def norms(maps: Tensor) -> Tensor:
    """(N,) float64: Euclidean."""
    found: Tensor = torch.linalg.vector_norm(maps.flatten(1), dim=1, dtype=torch.float64)
    return found


def absolute(maps: Tensor, others: Tensor) -> Tensor:
    return norms(others - maps)


def relative(maps: Tensor, others: Tensor) -> Tensor:
    """To the size of the first."""
    return norms(others - maps) / norms(maps)


def cosine(maps: Tensor, others: Tensor) -> Tensor:
    """1 - the cosine of the angle between them."""
    one, other = maps.flatten(1).double(), others.flatten(1).double()
    return 1 - (one * other).sum(1) / (norms(one) * norms(other))


def spearman(maps: Tensor, others: Tensor) -> Tensor:
    """1 - their rank correlation."""
    one, other = (mean_ranks(some.flatten(1)) for some in (maps, others))
    return cosine(one - one.mean(1, keepdim=True), other - other.mean(1, keepdim=True))


DISTANCES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "relative": relative,
    "absolute": absolute,
    "cosine": cosine,
    "spearman": spearman,
}


def distance(name: str, maps: Tensor, others: Tensor) -> Tensor:
    """(N,) float64: exactly 0 for the same map, NaN where it is undefined or a map is not finite."""
    same = (maps == others).flatten(1).all(1)
    return DISTANCES[name](maps, others).masked_fill(same, 0.0)
