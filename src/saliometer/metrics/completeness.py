"""Completeness: whether an attribution sums to what the image adds to the score (Sundararajan et al., 2017)."""

from math import inf

import torch
from torch import Tensor

from saliometer.metrics._baselines import OWN, baseline_of
from saliometer.registry import metric
from saliometer.types import Measuring, Samples, Scored, Scores, Subject, unaltered

LEAST = 1e-6  # a smaller difference between two logits is none


@metric(
    better="lower",
    formula="|Σ E − (f(x) − f(x₀))| ⁄ max(|f(x) − f(x₀)|, 10⁻⁶), x₀ the method’s baseline or zero",
    bounds=(0, inf),
    reads="attribution",
    passes=2,
    parts={"residual": "", "passed": "higher"},
    degenerate=("the error of n times its value", "1", "the error of its value"),
)
def completeness(
    maps: Tensor, samples: Samples, subject: Subject, *, baseline: str = OWN, tolerance: float = 1e-2
) -> Measuring:
    """|sum of the attribution - (f(x) - f(x0))| relative to |f(x) - f(x0)|, in logits.

    x0 is the method's own baseline, else zero in the model's input space. `residual` is the signed difference, `passed`
    is 1 where the relative error is within `tolerance`.
    """
    if tolerance < 0:
        raise ValueError(f"completeness: tolerance={tolerance}, wanted 0 or more")
    start = baseline_of(samples, subject, baseline)
    score = (yield Scores(unaltered(samples.batch.images), key="image"))[0].double()
    rise = score - (yield from start.scores(samples.batch.targets))
    residual = maps.sum((1, 2, 3), dtype=torch.float64) - rise
    error = residual.abs() / rise.abs().clamp(min=LEAST)
    return Scored(error, {"residual": residual, "passed": (error <= tolerance).double()})
