"""Integrated gradients with SmoothGrad: their mean over noisy copies of an image (Smilkov et al., 2017)."""

from functools import lru_cache

import torch
from torch import Tensor

from saliometer.methods._noise import deviations, noiseless, noisy
from saliometer.methods._path import OUTPUTS, complete, points, vanishes
from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Gradients, Model, Scores, each


@method(random=True, quick={"draws": 2, "steps": 3}, passes=1250, budget="draws", unit="contribution")
def ig_smooth_grad(
    model: Model,
    batch: Batch,
    *,
    draws: int = 25,
    noise: float = 0.15,
    scale: str = "range",
    steps: int = 50,
    rule: str = "gauss_legendre",
    baseline: str = "zero",
    output: str = "logit",
) -> Asking:
    """The mean over noisy copies of their integrated gradients from one baseline."""
    one_of("output", output, OUTPUTS)
    images = batch.images
    places, weights = points("ig_smooth_grad", rule, steps)
    deviation = deviations("ig_smooth_grad", images, noise, scale, draws)
    start = filled(model, images, baseline, references=batch.references, seeds=batch.seeds)

    @lru_cache(maxsize=2)  # all steps of a draw follow each other
    def way(draw: int) -> Tensor:
        return noisy(batch, deviation, "ig_smooth_grad", draw) - start

    def between(k: int) -> Tensor:
        return start + places[k % steps] * way(k // steps)

    def taken(k: int, slope: Tensor) -> Tensor:
        return way(k // steps) * slope.mul(weights[k % steps] / draws)

    maps = yield Gradients(each(between), draws * steps, taken, of=output)
    *noisy_scores, score = yield Scores(
        each(lambda k: noisy(batch, deviation, "ig_smooth_grad", k) if k < draws else start), draws + 1, of=output
    )
    same = vanishes(images - start) & (deviation == 0).flatten()
    promised = (torch.stack(noisy_scores).double().mean(0) - score.double()).masked_fill(same, 0)
    flags = {
        "equal_baseline": same,
        "zero_gradient": vanishes(maps) & ~same,
        "no_noise": noiseless(deviation, noise),
    }
    return complete(maps, promised, flags, {})
