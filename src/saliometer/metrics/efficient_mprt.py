"""Efficient MPRT: do maps get more complex when all weights are drawn anew (Hedström et al., 2024)."""

import torch
from torch import Tensor

from saliometer.metrics._randomised import checked, scored
from saliometer.registry import metric
from saliometer.sanity.entropy import entropy
from saliometer.types import Scored


@metric(
    better="higher",
    formula="mean over draws of (H′ − H) ⁄ H, H the entropy of E’s histogram, H′ that with all layers drawn anew",
    bounds=(-1, float("inf")),
    pairs=True,
    randomises=True,
    stage=lambda _: "signed",
    passes=5,
    random=True,
    parts={"spread": ""},
    degenerate=("undefined, it has no entropy", "undefined, it has no entropy", "0 if it never moves"),
)
def efficient_mprt(
    maps: Tensor,
    others: Tensor,
    *,
    draws: int = 5,
    bins: int = 100,
    target: str = "fixed",
    norms: str = "reestimate",
) -> Scored:
    """How much more complex a map is once all layers are drawn anew; a method that turns to noise scores best.

    The histogram spans each map's own range, so one outlier pushes all other pixels into few bins.
    """
    checked("efficient_mprt", draws=draws, bins=bins, target=target, norms=norms)
    before, after = (entropy(some.sum(1), bins) for some in (maps, others))
    values = ((after - before) / before).where(before > 0, torch.nan)
    return scored(values, maps, others, "a constant map has no entropy")
