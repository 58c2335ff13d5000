"""VarGrad: the variance of the gradient over noisy copies of an image (Adebayo et al., 2018)."""

import torch
from torch import Tensor

from saliometer.methods._noise import deviations, noiseless, noisy
from saliometer.methods._path import OUTPUTS, vanishes
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Explained, Gradients, Model, each


@method(random=True, quick={"draws": 3}, rendering="gray", passes=25, budget="draws", usual=False)
def var_grad(
    model: Model,
    batch: Batch,
    *,
    draws: int = 25,
    noise: float = 0.15,
    scale: str = "range",
    output: str = "logit",
) -> Asking:
    """The variance of the gradient over the same noisy copies as SmoothGrad's, divided by their number."""
    one_of("output", output, OUTPUTS)
    deviation = deviations("var_grad", batch.images, noise, scale, draws)
    mean = torch.zeros_like(batch.images)

    def drawn(draw: int) -> Tensor:
        return noisy(batch, deviation, "smooth_grad", draw)

    def taken(draw: int, slope: Tensor) -> Tensor:
        """Welford's update: the draws come in order, and what they add is never negative."""
        away = slope - mean
        mean.add_(away / (draw + 1))
        return away * (slope - mean)

    maps = (yield Gradients(each(drawn), draws, taken, of=output)) / draws
    flat = vanishes(mean) & vanishes(maps)
    return Explained(maps, flags={"zero_gradient": flat, "no_noise": noiseless(deviation, noise)})
