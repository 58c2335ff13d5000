"""What the metrics that compare a map with a mask share: the mask, the pixels that count, and their order."""

from torch import Tensor

from saliometer.maps import ranks
from saliometer.types import PRIMARY, Samples

NO_MASK = "no labelled pixel of the target"


def truth(samples: Samples) -> tuple[Tensor, Tensor]:
    """(N, H, W) bool twice: the target's objects as one mask, and the pixels of which it is known what they are."""
    mask = samples.region(PRIMARY, "ink")
    if samples.unlabelled is None:
        return mask, mask.new_ones(()).expand_as(mask)
    return mask & ~samples.unlabelled, ~samples.unlabelled


def order(maps: Tensor, labelled: Tensor, samples: Samples, ties: str) -> Tensor:
    """(N, H, W): the places of the labelled pixels from 0 for the highest; the others come after them all."""
    return ranks(maps.masked_fill(~labelled, float("-inf")), samples.batch.seeds, ties=ties)


def share(mask: Tensor, labelled: Tensor) -> Tensor:
    """(N,) float64: how much of the labelled pixels a mask takes."""
    return (mask & labelled).sum((1, 2)).double() / labelled.sum((1, 2)).clamp(min=1)
