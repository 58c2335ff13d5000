"""Average gain: what the target's probability wins on the image times its map (Zhang et al., Opti-CAM)."""

from torch import Tensor

from saliometer.metrics._masked import both_odds, gain
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Subject


@metric(
    better="higher",
    formula="max(0, p(x·m) − p(x)) ⁄ (1 − p(x))",
    reads="scaled",
    passes=2,
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near 0"),
)
def average_gain(maps: Tensor, samples: Samples, subject: Subject, *, space: str = "raw") -> Measuring:
    """max(0, p(x m) - p(x)) / (1 - p(x)); `space` says what is shown where the map is 0: raw black, normalised grey."""
    before, after = yield from both_odds(maps, samples, subject, space)
    return gain(before, after)
