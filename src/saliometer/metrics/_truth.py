"""What the metrics that compare a map with a mask share: the mask, the pixels that count, and their order."""

import torch
from torch import Tensor

from saliometer.maps import TIES, ranks
from saliometer.registry import one_of
from saliometer.types import PRIMARY, Samples

NO_MASK = "no labelled pixel of the target"


def truth(samples: Samples) -> tuple[Tensor, Tensor]:
    """(N, H, W) bool twice: the target's objects as one mask, and the pixels of which it is known what they are."""
    mask = samples.region(PRIMARY, "ink")
    if samples.unlabelled is None:
        return mask, mask.new_ones(()).expand_as(mask)
    return mask & ~samples.unlabelled, ~samples.unlabelled


def highest(maps: Tensor, labelled: Tensor, samples: Samples, ties: str) -> Tensor:
    """(N, H, W) bool: the one highest labelled pixel."""
    known = maps.masked_fill(~labelled, float("-inf"))
    ones = torch.ones(len(maps), dtype=torch.int64, device=maps.device)
    return _from(known.amax((1, 2)), known, ones, samples, ties)


def first(maps: Tensor, labelled: Tensor, counts: Tensor, samples: Samples, ties: str) -> Tensor:
    """(N, H, W) bool: the `counts` (N,) highest labelled pixels."""
    known = maps.masked_fill(~labelled, float("-inf"))
    values = known.flatten(1).sort(1, descending=True).values
    return _from(values.gather(1, (counts - 1).clamp(min=0)[:, None])[:, 0], known, counts, samples, ties)


def _from(lowest: Tensor, known: Tensor, counts: Tensor, samples: Samples, ties: str) -> Tensor:
    """The pixels at or above `lowest` (N,); an order is drawn only for maps where too many are equal to it."""
    one_of("ties", ties, TIES)
    chosen = (known >= lowest[:, None, None]) & (counts > 0)[:, None, None]
    crowded = (chosen.sum((1, 2)) > counts).nonzero()[:, 0]
    if len(crowded):
        places = ranks(known[crowded], samples.batch.seeds[crowded], ties=ties)
        chosen[crowded] = places < counts[crowded][:, None, None]
    return chosen


def share(mask: Tensor, labelled: Tensor) -> Tensor:
    """(N,) float64: how much of the labelled pixels a mask takes."""
    return (mask & labelled).sum((1, 2)).double() / labelled.sum((1, 2)).clamp(min=1)
