"""Max-sensitivity: the most that a method's map changes when the image is shaken (Yeh et al., 2019)."""

from math import inf

from torch import Tensor

from saliometer.metrics._sensitivity import moved
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Scored, Subject


@metric(
    better="lower",
    formula="max of ‖E(x + d) − E(x)‖ ⁄ ‖E(x)‖ over draws d ∼ U(−radius, radius)",
    bounds=(0, inf),
    reads="attribution",
    reexplains=True,
    random=True,
    passes=50,
    quick={"draws": 2},
    degenerate=("0 if it stays the same", "invalid, nothing is relative to it", "0 if it stays the same"),
)
def max_sensitivity(
    maps: Tensor,
    samples: Samples,
    subject: Subject,
    *,
    radius: float = 0.2,
    space: str = "normalised",
    draws: int = 50,
    distance: str = "relative",
) -> Measuring:
    """The largest |S(x') - S(x)| / |S(x)| over images x' shaken by U(-radius, radius) at every value.

    The method itself explains x' for the target of x. `radius` counts in the model's input space, with space=pixel in
    pixel values of [0, 1]; `distance` may also be absolute, cosine or spearman (1 - either).
    """
    found, invalid = yield from moved(maps, samples, subject, radius, space, draws, distance)
    return Scored(found.amax(0), invalid=invalid)
