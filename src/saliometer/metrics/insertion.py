"""Insertion: the target's probability while the map's highest pixels come into focus (Petsiuk et al., 2018)."""

from torch import Tensor

from saliometer.metrics._curves import area
from saliometer.metrics._masked import blank, own_odds
from saliometer.perturb import unfocused
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Scores, Subject, unaltered


@metric(
    better="higher",
    formula="∫₀¹ p(blurred x with its highest share t of pixels sharp) dt, by trapezoids",
    reads="order",
    passes=225,
    quick={"steps": 4},
    random=True,  # by the order of equal pixels
    degenerate=("that of a random order", "that of a random order", "one pixel first, the others in random order"),
)
def insertion(
    maps: Tensor, samples: Samples, subject: Subject, *,
    steps: int = 224, ties: str = "seed", draws: int = 1, space: str = "normalised", blur: str = "rise",
) -> Measuring:  # fmt: skip
    """The area under the curve from the blurred image to the image, in `steps` equal parts of its pixels.

    `blur` is the authors' nearly flat 11x11 window or a true_gaussian, in `space`: towards the border it fades to
    normalised grey or raw black. Ties as for deletion.
    """
    images, empty = samples.batch.images, blank(samples, subject, space)
    start = empty + unfocused(images - empty, blur)
    found = yield Scores(unaltered(start), of="log_odds", key=f"image {blur} {space}")
    ends = found[0].double(), (yield from own_odds(samples))
    key = f"insertion {blur} {space}"
    return (yield from area(maps, samples, start, images, ends, key, steps=steps, ties=ties, draws=draws))
