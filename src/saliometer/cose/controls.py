"""Maps that explain nothing, and what COSE says of them (cose.md, 6.4): finished maps (N, H, W) in [0, 1].

Each is given the pixels (N, C, H, W) in [0, 1], the predicted classes (N,), a seed for each call, and how many classes
there are. "Fresh" ones differ from call to call, "fixed" ones never do.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.seeds import normal, uniform

SIDE = 224  # what lengths in pixels are given for


def constant(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """The same value everywhere."""
    return torch.full_like(pixels[:, 0], 0.5)


def fresh_noise(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """Uniform noise, drawn for every call."""
    return uniform(seeds, "cose noise", *pixels.shape[2:]).to(pixels)


def fresh_smooth_noise(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """Noise under a Gaussian of 4 pixels at side 224, drawn for every call."""
    return smooth_noise(pixels, seeds, 4.0 * min(pixels.shape[2:]) / SIDE)


def fresh_cam_7(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """The positive part of 7x7 normal numbers made large, drawn for every call."""
    return _cam(pixels, seeds, 7)


def fresh_cam_14(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """The same of 14x14."""
    return _cam(pixels, seeds, 14)


def fixed_noise(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """One map of uniform noise for all."""
    return fresh_noise(pixels, classes, torch.zeros_like(seeds), count)


def fixed_cam_7(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """One random 7x7 map for all."""
    return _cam(pixels, torch.zeros_like(seeds), 7)


def fixed_centre(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """A Gaussian of 40 pixels at side 224 in the middle."""
    rows, columns = (torch.arange(side).to(pixels) - (side - 1) / 2 for side in pixels.shape[2:])
    spread = 40.0 * min(pixels.shape[2:]) / SIDE
    return (-(rows[:, None].square() + columns.square()) / (2 * spread**2)).exp().expand(len(pixels), -1, -1)


def sobel_edge(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """The edges of the image, which no model had a part in."""
    gray = pixels.mean(1, keepdim=True)
    across = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]]).to(pixels) / 4
    padded = F.pad(gray, [1] * 4, mode="replicate")
    slopes = F.conv2d(padded, torch.stack((across, across.T))[:, None])
    return _unit(slopes.square().sum(1).sqrt())


def label_level(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """One level everywhere that tells the predicted class: k / (classes - 1)."""
    levels = classes.to(pixels) / max(1, count - 1)
    return levels[:, None, None].expand(-1, *pixels.shape[2:])


def parity_edge(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int) -> Tensor:
    """The edges of the image, turned light for dark where the predicted class has an odd number."""
    edges = sobel_edge(pixels, classes, seeds, count)
    return torch.where((classes % 2 == 1)[:, None, None], 1 - edges, edges)


def smooth_noise(pixels: Tensor, seeds: Tensor, sigma: float) -> Tensor:
    """Noise under a Gaussian of `sigma` pixels, drawn for every call: a control of any grain."""
    return _unit(_blurred(normal(seeds, "cose smooth noise", pixels[:, 0]), sigma))


Control = Callable[[Tensor, Tensor, Tensor, int], Tensor]
CONTROLS: dict[str, Control] = {
    one.__name__: one
    for one in (
        constant, fresh_noise, fresh_smooth_noise, fresh_cam_7, fresh_cam_14, fixed_noise, fixed_cam_7, fixed_centre,
        sobel_edge, label_level, parity_edge,
    )
}  # fmt: skip


def _cam(pixels: Tensor, seeds: Tensor, grid: int) -> Tensor:
    small = normal(seeds, f"cose cam {grid}", pixels.new_empty(len(pixels), 1, grid, grid)).relu()
    return _unit(F.interpolate(small, size=pixels.shape[2:], mode="bilinear", align_corners=False)[:, 0])


def _unit(maps: Tensor) -> Tensor:
    """From 0 to 1; a constant map is 0."""
    low, high = maps.amin((1, 2), keepdim=True), maps.amax((1, 2), keepdim=True)
    return (maps - low) / (high - low).where(high > low, 1.0)


def _blurred(maps: Tensor, sigma: float) -> Tensor:
    """The borders are mirrored; where the kernel is larger than the image, it is cut."""
    reach = min(int(4 * sigma + 0.5), min(maps.shape[1:]) - 1)
    if reach < 1 or not sigma:
        return maps
    weights = (-torch.arange(-reach, reach + 1).to(maps).square() / (2 * sigma**2)).exp()
    weights = weights / weights.sum()
    padded = F.pad(maps[:, None], [reach] * 4, mode="reflect")
    return F.conv2d(F.conv2d(padded, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))[:, 0]
