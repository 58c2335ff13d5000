"""Pointing game: whether the highest pixel lies on the object (Zhang et al., 2018)."""

import math

from torch import Tensor
from torch.nn import functional as F

from saliometer.metrics._truth import NO_MASK, highest, share, truth
from saliometer.registry import metric
from saliometer.types import Samples, Scored, Subject


@metric(
    better="higher",
    formula="1 if the highest labelled pixel of the map lies in M, the mask, else 0",
    bounds=(0, 1),
    reads="order",
    passes=0,
    random=True,  # by the order of equal pixels
    needs_truth=True,
    parts={"chance": ""},
    degenerate=("1 or 0 by lot, at chance", "1 or 0 by lot, at chance", "1 if that pixel lies on the mask, else 0"),
)
def pointing_game(
    maps: Tensor, samples: Samples, subject: Subject, *, tolerance: float = 0.0, ties: str = "seed"
) -> Scored:
    """1 if the highest pixel lies on the object or at most `tolerance` pixels from it, else 0; unlabelled ones are out.

    `chance` is the share of labelled pixels that would be a hit.
    """
    if tolerance < 0:
        raise ValueError(f"metric 'pointing_game': tolerance={tolerance}, wanted 0 pixels or more")
    mask, labelled = truth(samples)
    hits = widened(mask, tolerance) & labelled
    best = highest(maps, labelled, samples, ties)
    empty = ~mask.flatten(1).any(1)
    return Scored((best & hits).flatten(1).any(1).double(), {"chance": share(hits, labelled)}, {NO_MASK: empty})


def widened(mask: Tensor, reach: float) -> Tensor:
    """(N, H, W) bool: all pixels at a Euclidean distance of at most `reach` from a pixel of the mask."""
    rows, wide, values = math.floor(reach), mask.clone(), mask[:, None].float()
    for down in range(-rows, rows + 1):
        across = math.isqrt(math.floor(reach**2) - down**2)
        spread = F.max_pool2d(values, (1, 2 * across + 1), 1, (0, across))[:, 0] > 0
        wide |= F.pad(spread, (0, 0, max(down, 0), max(-down, 0)))[:, max(-down, 0) : max(-down, 0) + mask.shape[1]]
    return wide
