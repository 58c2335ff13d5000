"""Average increase: whether the target's probability rises on the image times its map (Chattopadhyay, 2018)."""

from torch import Tensor

from saliometer.metrics._masked import both_odds, rises
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Subject


@metric(
    better="higher",
    formula="1 if p(x·m) > p(x), else 0",
    reads="scaled",
    passes=2,
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near 0"),
)
def average_increase(maps: Tensor, samples: Samples, subject: Subject, *, space: str = "raw") -> Measuring:
    """1 where p(x m) > p(x), else 0; `space` says what is shown where the map is 0: raw black, normalised grey."""
    before, after = yield from both_odds(maps, samples, subject, space)
    return rises(before, after)
