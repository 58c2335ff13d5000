"""Average drop: what the target's probability loses on the image times its map (Chattopadhyay et al., 2018)."""

from torch import Tensor

from saliometer.metrics._masked import both_odds, drop
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Subject


@metric(
    better="lower",
    formula="max(0, p(x) − p(x·m)) ⁄ p(x)",
    reads="scaled",
    passes=2,
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near 1"),
)
def average_drop(maps: Tensor, samples: Samples, subject: Subject, *, space: str = "raw") -> Measuring:
    """max(0, p(x) - p(x m)) / p(x); `space` says what is shown where the map is 0: raw black, normalised grey."""
    before, after = yield from both_odds(maps, samples, subject, space)
    return drop(before, after)
