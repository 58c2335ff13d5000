"""Integrated gradients: the gradient averaged on the way from a baseline to the image (Sundararajan et al., 2017)."""

import torch

from saliometer.methods._path import OUTPUTS, complete, loose, points, risen, straight, vanishes
from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model

MOST = 400  # points that an adaptive run goes up to


@method(quick={"steps": 4}, passes=50, budget="steps", unit="contribution", multiplier="baseline")
def integrated_gradients(
    model: Model,
    batch: Batch,
    *,
    steps: int = 50,
    rule: str = "gauss_legendre",
    baseline: str = "zero",
    path: str = "straight",
    adaptive: bool = False,
    output: str = "logit",
) -> Asking:
    """The gradient averaged from a baseline to the image, times their difference; sums to the change in score.

    `path=legacy_double` goes on from the image to twice as far, as iNNvestigate 1.0.8 did; `adaptive` doubles the steps
    of images whose sum is off by more than 1 %.
    """
    one_of("output", output, OUTPUTS)
    one_of("path", path, ("straight", "legacy_double"))
    images = batch.images
    stops = points("integrated_gradients", rule, steps)
    base = filled(model, images, baseline, references=batch.references, seeds=batch.seeds)
    way = images - base
    start, end = (base, images) if path == "straight" else (images, images + way)
    promised = yield from risen(start, end, output)
    slope = yield straight(start, way, stops, output)
    maps, used = way * slope, torch.full_like(promised, steps)
    while adaptive and steps < MOST and (off := loose(maps, promised)).any():
        steps = min(2 * steps, MOST)
        slope = yield straight(start, way, points("integrated_gradients", rule, steps), output)
        maps = torch.where(off[:, None, None, None], way * slope, maps)
        used = used.masked_fill(off, steps)
    same = vanishes(way)
    flags = {"equal_baseline": same, "zero_gradient": vanishes(maps) & ~same}
    return complete(maps, promised, flags, {"steps": used} if adaptive else {})
