"""Necessity: whether all that keeps less than a map loses the model's decision (after Zhang et al.)."""

from torch import Tensor

from saliometer.metrics._decision import OTHER, checked_draws, decided, kept_by_less, kept_by_more
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Scored, Subject


@metric(
    better="higher",
    formula="1 if c(x·m′) ≠ c(x) for all random m′ = u·m, u in [0, 1), else 0; c the prediction",
    reads="scaled",
    passes=34,  # 16 beside sufficiency
    quick={"draws": 3},
    random=True,
    parts={"share": "higher", "both": "higher"},
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "near 1"),
)
def necessity(maps: Tensor, samples: Samples, subject: Subject, *, draws: int = 16) -> Measuring:
    """1 where the predicted class is lost on all random maps below the image's own.

    Part `share` is the share of those random maps that lose the class; part `both` is 1 where the map is sufficient as
    well. The emptiest map wins: read it beside sufficiency.
    """
    checked_draws(draws)
    decision = yield from decided(samples)
    itself, more = yield from kept_by_more(maps, samples, subject, decision, draws)
    lost = ~(yield from kept_by_less(maps, samples, subject, decision, draws))
    necessary, sufficient = lost.all(0), itself & more.all(0)
    parts = {"share": lost.double().mean(0), "both": (necessary & sufficient).double()}
    empty = maps.flatten(1).amax(1) == 0
    invalid = {OTHER: samples.batch.targets != decision, "nothing is less than an empty map": empty}
    return Scored(necessary.double(), parts, invalid)
