"""Deletion: the target's probability while the map's highest pixels are taken out (Petsiuk et al., 2018)."""

from torch import Tensor

from saliometer.metrics._curves import area
from saliometer.metrics._masked import blank, blank_odds, own_odds
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Subject


@metric(
    better="lower",
    formula="∫₀¹ p(x with its highest share t of pixels set to grey) dt, by trapezoids",
    reads="order",
    passes=225,
    quick={"steps": 4},
    random=True,  # by the order of equal pixels
    degenerate=("that of a random order", "that of a random order", "one pixel first, the others in random order"),
)
def deletion(
    maps: Tensor, samples: Samples, subject: Subject, *,
    steps: int = 224, ties: str = "seed", draws: int = 1, space: str = "normalised",
) -> Measuring:  # fmt: skip
    """The area under the curve from the image to none of it, in `steps` equal parts of its pixels.

    `space` is what is left: normalised grey or raw black. Equal pixels go in a random order (`draws` of them are
    averaged), or with ties=rise the last first, as the authors' code has it.
    """
    images, empty = samples.batch.images, blank(samples, subject, space)
    whole = yield from own_odds(samples)
    none = yield from blank_odds(samples, subject, space)
    key = f"deletion {space}"
    return (yield from area(maps, samples, images, empty, (whole, none), key, steps=steps, ties=ties, draws=draws))
