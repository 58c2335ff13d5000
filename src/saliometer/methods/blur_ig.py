"""Blur integrated gradients: the gradient along the way from a blurred image to the sharp one (Xu et al., 2020)."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saliometer.methods._path import OUTPUTS, complete, risen, vanishes
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Gradients, Model

SIDE = 224  # the image size that `sigma` is meant for
STEP = 0.01  # of the slope by sigma in Google's PAIR library

Scheme = tuple[list[float], list[float], list[float], float]  # sigmas of points; of less and more blur; weight of that


def _secant(steps: int, most: float) -> Scheme:
    """Finer where there is less blur; each gradient counts for half of the way to either neighbour."""
    sigmas = [most * (k / steps) ** 2 for k in range(steps + 1)]
    return sigmas, [sigmas[0], *sigmas[:-1]], [*sigmas[1:], sigmas[-1]], 0.5


def _pair(steps: int, most: float) -> Scheme:
    sigmas = [most * k / steps for k in range(steps)]
    return sigmas, sigmas, [sigma + STEP for sigma in sigmas], most / steps / STEP


SCHEMES: dict[str, Callable[[int, float], Scheme]] = {"secant": _secant, "pair": _pair}


@method(quick={"steps": 4}, passes=101, budget="steps", unit="contribution")
def blur_ig(
    model: Model, batch: Batch, *, steps: int = 100, sigma: float = 50.0, scheme: str = "secant", output: str = "logit"
) -> Asking:
    """The gradient along ever less blur, times what comes into focus.

    `sigma` is the most blur in pixels: of an image of 224, or with scheme=pair, which is Google's, of any image.
    """
    one_of("output", output, OUTPUTS)
    one_of("scheme", scheme, SCHEMES)
    if steps < 1 or sigma < 0:
        raise ValueError(f"blur_ig: steps={steps}, sigma={sigma}; wanted steps of 1 or more, sigma of 0 or more")
    images = batch.images
    most = sigma if scheme == "pair" else sigma * min(images.shape[2:]) / SIDE
    *sigmas, weight = SCHEMES[scheme](steps, most)
    points, sharper, softer = (kernels(images, some) for some in sigmas)

    def blurry(ks: range) -> Tensor:
        return blurred(images, points[ks.start : ks.stop])

    def taken(k: int, slope: Tensor) -> Tensor:
        sharp, soft = blurred(images, torch.stack((sharper[k], softer[k]))).unbind()
        return slope * (sharp - soft).mul_(weight)

    (start,) = blurred(images, kernels(images, [most]))
    promised = yield from risen(start, images, output)
    maps = yield Gradients(blurry, len(points), taken, of=output)
    same = vanishes(images - start)
    return complete(maps, promised, {"equal_baseline": same, "zero_gradient": vanishes(maps) & ~same}, {})


def kernels(images: Tensor, sigmas: Sequence[float]) -> Tensor:
    """(K, longer side): how much a pixel that far away counts; cut off at 4 sigmas, as scipy does."""
    deviation = images.new_tensor(sigmas, dtype=torch.float64)[:, None]
    reach = (4 * deviation + 0.5).long()
    side = max(images.shape[2:])
    away = torch.arange(max(side, int(4 * max(sigmas) + 0.5) + 1), device=images.device)
    taps = (-0.5 * (away / deviation.clamp(min=1e-9)).square()).exp() * (away <= reach)
    return (taps / (2 * taps.sum(1, keepdim=True) - taps[:, :1]))[:, :side].to(images.dtype)


def blurred(images: Tensor, kernel: Tensor) -> Tensor:
    """(K, N, C, H, W): the images under each of K kernels, with 0 beyond the border, as two matrix products."""
    rows, columns = (kernel[:, _distances(side, images)] for side in images.shape[2:])
    half = torch.einsum("khi,ncij->khncj", rows, images)
    return torch.einsum("khncj,kwj->knchw", half, columns)


def _distances(side: int, images: Tensor) -> Tensor:
    place = torch.arange(side, device=images.device)
    return (place[:, None] - place).abs()
