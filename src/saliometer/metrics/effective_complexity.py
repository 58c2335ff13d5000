"""Effective complexity: how many pixels a map needs (Nguyen and Martinez, 2020), or how many it marks (Quantus)."""

from collections.abc import Generator

import torch
from torch import Tensor

from saliometer.maps import ranks
from saliometer.metrics._masked import moved, own_odds, shown
from saliometer.registry import metric, one_of
from saliometer.types import Measuring, Question, Samples, Scored, Scores, Subject, unaltered

DEFINITIONS = ("threshold", "nguyen")


@metric(
    better="lower",
    formula="number of pixels with m > ε, ε = 10⁻⁵",
    bounds=(0.0, float("inf")),  # a count of pixels
    reads="scaled",
    flat=True,
    passes=0,
    degenerate=(
        "n (nguyen: that of a random order)",
        "invalid, it marks no pixel (nguyen: that of a random order)",
        "1 (nguyen: that of one pixel first, the others in random order)",
    ),
)
def effective_complexity(
    maps: Tensor, samples: Samples, subject: Subject, *,
    definition: str = "threshold", epsilon: float = 1e-5, tolerance: float = 0.01, ties: str = "seed",
    space: str = "raw",
) -> Measuring:  # fmt: skip
    """A count of pixels: those above `epsilon`, or the fewest that keep the target's probability.

    `threshold` asks no model. `nguyen` is the smallest k for which the k highest pixels alone move p by at most the
    root of `tolerance`, by halving: where p does not change steadily with k, one of those where k - 1 fails.
    """
    if not 0 <= epsilon < 1 or not 0 <= tolerance < 1:
        raise ValueError(
            f"effective_complexity: epsilon={epsilon}, tolerance={tolerance}; wanted both from 0 to below 1"
        )
    if one_of("definition", definition, DEFINITIONS) == "threshold":
        empty = ~maps.flatten(1).any(1)
        count = (maps > epsilon).flatten(1).sum(1).double()
        return Scored(count, invalid={"a map of zeros marks no pixel": empty})
    return (yield from _fewest(maps, samples, subject, tolerance, ties, space))


def _fewest(
    maps: Tensor, samples: Samples, subject: Subject, tolerance: float, ties: str, space: str
) -> Generator[Question, Tensor, Tensor]:
    places = ranks(maps, samples.batch.seeds, ties=ties)
    before = yield from own_odds(samples)
    pixels = maps[0].numel()
    low = torch.zeros(len(maps), dtype=torch.int64, device=maps.device)
    high = torch.full_like(low, pixels)  # the whole image moves nothing
    for _ in range(pixels.bit_length()):
        middle = (low + high) // 2
        kept = (places < middle[:, None, None]).to(maps.dtype)
        after = yield Scores(unaltered(shown(kept, samples, subject, space)), of="log_odds")
        enough = (moved(before, after[0].double()).square() <= tolerance) | (middle == pixels)
        low, high = torch.where(enough, low, middle + 1), torch.where(enough, middle, high)
    return high.double()
