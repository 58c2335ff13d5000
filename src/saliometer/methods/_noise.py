"""Noisy copies of an image, as SmoothGrad makes them (Smilkov et al., 2017)."""

from torch import Tensor

from saliometer.registry import one_of
from saliometer.seeds import normal
from saliometer.types import Batch

SCALES = ("range", "absolute")


def deviations(name: str, images: Tensor, noise: float, scale: str, draws: int) -> Tensor:
    """(N, 1, 1, 1): the standard deviation, `noise` as a share of each image's value range, or absolute."""
    one_of("scale", scale, SCALES)
    if draws < 1 or noise < 0:
        raise ValueError(f"{name}: draws={draws}, noise={noise}; wanted draws of 1 or more, noise of 0 or more")
    if scale == "absolute":
        return images.new_full((len(images), 1, 1, 1), noise)
    return noise * (images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True))


def noisy(batch: Batch, deviation: Tensor, purpose: str, draw: int) -> Tensor:
    """(N, C, H, W): the images with one draw of noise, not clipped."""
    return normal(batch.seeds, f"{purpose} {draw}", like=batch.images).mul_(deviation).add_(batch.images)


def noiseless(deviation: Tensor, noise: float) -> Tensor:
    """(N,) bool: images that got no noise although there was to be some."""
    return (deviation == 0).flatten() & (noise > 0)
