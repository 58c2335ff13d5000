"""SmoothGrad: the mean gradient over noisy copies of an image (Smilkov et al., 2017)."""

from torch import Tensor

from saliometer.methods._noise import deviations, noiseless, noisy
from saliometer.methods._path import OUTPUTS, vanishes
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Explained, Gradients, Model, each


@method(random=True, quick={"draws": 3}, rendering="gray", passes=25, budget="draws", unit="gradient")
def smooth_grad(
    model: Model,
    batch: Batch,
    *,
    draws: int = 25,
    noise: float = 0.15,
    scale: str = "range",
    squared: bool = False,
    output: str = "logit",
) -> Asking:
    """The mean gradient over noisy copies; `noise` is a share of each image's value range, or absolute."""
    one_of("output", output, OUTPUTS)
    deviation = deviations("smooth_grad", batch.images, noise, scale, draws)

    def drawn(draw: int) -> Tensor:
        return noisy(batch, deviation, "smooth_grad", draw)

    def taken(_: int, slope: Tensor) -> Tensor:
        return slope.square() if squared else slope

    maps = (yield Gradients(each(drawn), draws, taken, of=output)) / draws
    return Explained(maps, flags={"zero_gradient": vanishes(maps), "no_noise": noiseless(deviation, noise)})
