"""IOU with a mask: overlap of the object and as many of the highest pixels as it has."""

from torch import Tensor

from saliometer.metrics._truth import NO_MASK, first, share, truth
from saliometer.registry import metric
from saliometer.types import Samples, Scored, Subject


@metric(
    better="higher",
    formula="|T ∩ M| ⁄ |T ∪ M|; M the mask, T the |M| highest pixels; unlabelled pixels are out",
    bounds=(0, 1),
    reads="order",
    passes=0,
    random=True,  # by the order of equal pixels
    needs_truth=True,
    parts={"chance": ""},
    degenerate=("at chance, by lot", "at chance, by lot", "that pixel first, the others by lot"),
)
def iou(maps: Tensor, samples: Samples, subject: Subject, *, ties: str = "seed") -> Scored:
    """Intersection over union of the mask's K pixels and the K highest ones; unlabelled pixels are out of both.

    `chance` is about what a random map scores: q / (2 - q) for a mask that takes the share q.
    """
    mask, labelled = truth(samples)
    count = mask.sum((1, 2))
    chosen = first(maps, labelled, count, samples, ties)
    both = (chosen & mask).sum((1, 2)).double()
    part = share(mask, labelled)
    return Scored(both / (2 * count - both).clamp(min=1), {"chance": part / (2 - part)}, {NO_MASK: count == 0})
