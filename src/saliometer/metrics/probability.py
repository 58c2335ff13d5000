"""Probability: how sure the model is of the explained class, to set beside every score."""

from torch import Tensor

from saliometer.metrics._masked import own_odds
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Subject


@metric(
    better="higher",
    formula="p(x)",
    reads="attribution",
    descriptive=True,
    degenerate=("the same as for any map", "the same as for any map", "the same as for any map"),
)
def probability(maps: Tensor, samples: Samples, subject: Subject) -> Measuring:
    """The target's probability on the image itself, whatever the map."""
    odds = yield from own_odds(samples)
    return odds.sigmoid()
