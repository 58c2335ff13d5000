"""SmoothGrad: the mean gradient over noisy copies of an image (Smilkov et al., 2017)."""

from torch import Tensor

from saliometer.registry import method, one_of
from saliometer.seeds import normal
from saliometer.types import Asking, Batch, Gradients, Model, each


@method(random=True, quick={"draws": 3}, rendering="gray")
def smooth_grad(
    model: Model, batch: Batch, *, draws: int = 25, noise: float = 0.15, scale: str = "range", squared: bool = False
) -> Asking:
    """The mean gradient over noisy copies; `noise` is a share of each image's value range, or absolute."""
    one_of("scale", scale, ("range", "absolute"))
    if draws < 1 or noise < 0:
        raise ValueError(f"smooth_grad: draws={draws}, noise={noise}; wanted draws of 1 or more, noise of 0 or more")
    images = batch.images
    spread = images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True)
    deviation = noise * (spread if scale == "range" else spread.new_ones(()))

    def noisy(draw: int) -> Tensor:
        return normal(batch.seeds, f"smooth_grad {draw}", like=images).mul_(deviation).add_(images)

    def taken(_: int, slope: Tensor) -> Tensor:
        return slope.square() if squared else slope

    return (yield Gradients(each(noisy), draws, taken)) / draws
