"""Sufficiency: whether what a map keeps, and all that keeps more, holds the model's decision (after Zhang et al.)."""

from torch import Tensor

from saliometer.metrics._decision import OTHER, checked_draws, decided, kept_by_more
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Scored, Subject


@metric(
    better="higher",
    formula="1 if c(x·m′) = c(x) for m′ = m and all random m′ = m + u(1 − m), u in [0, 1), else 0; c the prediction",
    reads="scaled",
    passes=18,
    quick={"draws": 3},
    random=True,
    parts={"share": "higher"},
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near 0"),
)
def sufficiency(maps: Tensor, samples: Samples, subject: Subject, *, draws: int = 16) -> Measuring:
    """1 where the predicted class stays on the image times its map and on all random maps above it.

    Part `share` is the share of those random maps that keep the class. The fullest map wins: read it beside necessity.
    """
    checked_draws(draws)
    decision = yield from decided(samples)
    itself, more = yield from kept_by_more(maps, samples, subject, decision, draws)
    invalid = {OTHER: samples.batch.targets != decision}
    return Scored((itself & more.all(0)).double(), {"share": more.double().mean(0)}, invalid)
