"""Ways to take evidence out of an image: fills, masks and blur, shared by methods and metrics."""

from functools import lru_cache

import torch
from torch import Tensor

from saliometer.registry import one_of
from saliometer.seeds import uniform
from saliometer.types import Model

FILLS = ("zero", "black", "white", "mean", "blur", "uniform")
SHARED = ("zero", "black", "white", "mean")  # the same for every image
BLUR = 0.1  # the standard deviation of the fill `blur`, as a share of the image's shorter side
KERNELS = ("rise", "true_gaussian")
WINDOW, SPREAD = 11, 5.0  # of those kernels: pixels along a side, and the standard deviation


def filled(
    model: Model, images: Tensor, fill: str, *, references: Tensor | None = None, seeds: Tensor | None = None
) -> Tensor:
    """Images without evidence.

    `zero` is 0 in the model's input space, `black` and `white` are pixel values, `mean` is that of the references,
    `blur` the image itself out of focus, and `uniform` noise over all values a pixel can take, drawn by seed.
    """
    one_of("fill", fill, FILLS)
    if fill == "zero":
        return torch.zeros_like(images)
    if fill == "mean":
        return _mean(references, images).expand_as(images)
    if fill == "blur":
        return blurred(images, BLUR * min(images.shape[2:]))
    mean, std = (_channels(tuple(values), images.dtype, images.device) for values in (model.mean, model.std))
    if fill == "uniform":
        if seeds is None:
            raise ValueError("fill=uniform is drawn by seed, but no seeds came with the images")
        low, high = ((edge - mean) / std for edge in (model.low, model.high))
        return low + (high - low) * uniform(seeds, "fill", *images.shape[1:]).to(images.dtype)
    return ((float(fill == "white") - mean) / std).expand_as(images)


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # kept for callers in any mode; a copy to the device would wait for its passes
def _channels(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """(1, C or 1, 1, 1)."""
    return torch.tensor(values, dtype=dtype, device=device).view(1, -1, 1, 1)


def _mean(references: Tensor | None, images: Tensor) -> Tensor:
    if references is None or not len(references):
        raise ValueError("fill=mean is the mean of reference images, but none came with the batch: name another fill")
    if references.shape[1:] != images.shape[1:]:
        came, wanted = tuple(references.shape[1:]), tuple(images.shape[1:])
        raise ValueError(f"fill=mean: references have shape {came}, wanted that of the images, {wanted}")
    return references.double().mean(0).to(images.dtype)


def masked(images: Tensor, masks: Tensor, blank: Tensor) -> Tensor:
    """The images where masks are 1, `blank` where they are 0, both exactly, and a straight mix between."""
    return torch.lerp(blank, images, masks)


def blurred(images: Tensor, sigma: float, *, border: str = "reflect", truncate: float = 4.0) -> Tensor:
    """A Gaussian blur over rows and columns, cut off at `truncate` sigmas.

    Beyond the border lies the mirrored image, its edge pixels not repeated (as PyTorch pads it), or `zero`.
    """
    one_of("border", border, ("reflect", "zero"))
    if sigma < 0:
        raise ValueError(f"blur: sigma={sigma}, wanted 0 or more")
    kind = images.dtype, images.device
    rows, columns = (_smoothing(size, sigma, border, truncate, *kind) for size in images.shape[-2:])
    return rows @ images @ columns.T


def unfocused(images: Tensor, kernel: str) -> Tensor:
    """Images blurred by an 11x11 window, zero beyond the border: where RISE's insertion starts.

    `true_gaussian` is a Gaussian of sigma 5 cut to the window. `rise` is what the authors' code makes of it: mirrored
    at the window's edges its tails fold back, and the window is nearly flat.
    """
    one_of("kernel", kernel, KERNELS)
    kind = images.dtype, images.device
    rows, columns = (_window(size, kernel, *kind) for size in images.shape[-2:])
    return rows @ images @ columns.T


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # kept for callers in any mode
def _smoothing(
    size: int, sigma: float, border: str, truncate: float, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """(size, size): the blur along one side as a matrix, so that any reach and border is one product."""
    return _banded(size, _taps(sigma, int(truncate * sigma + 0.5)), border).to(device, dtype)  # rounded as scipy does


@lru_cache(maxsize=64)
@torch.inference_mode(False)
def _window(size: int, kernel: str, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(size, size): one of KERNELS along one side."""
    taps = _taps(SPREAD, WINDOW // 2)
    if kernel == "rise":
        taps = _banded(WINDOW, _taps(SPREAD, int(4 * SPREAD)), "mirror")[:, WINDOW // 2]
    return _banded(size, taps, "zero").to(device, dtype)


def _taps(sigma: float, reach: int) -> Tensor:
    """(2 reach + 1,) float64, of sum 1."""
    taps = (-0.5 * (torch.arange(-reach, reach + 1).double() / (sigma or 1.0)).square()).exp()
    return taps / taps.sum()


def _banded(size: int, taps: Tensor, border: str) -> Tensor:
    """(size, size) float64: a convolution as a matrix; `mirror` repeats the edge pixels, `reflect` does not."""
    reach = len(taps) // 2
    places = torch.arange(size)[:, None] + torch.arange(-reach, reach + 1)
    if border == "reflect":
        period = max(2 * (size - 1), 1)
        places = torch.minimum(places % period, -places % period)
    if border == "mirror":
        places = torch.minimum(places % (2 * size), (-1 - places) % (2 * size))
    weights = taps * ((places >= 0) & (places < size))
    return torch.zeros(size, size, dtype=torch.float64).scatter_add_(1, places.clamp(0, size - 1), weights)
