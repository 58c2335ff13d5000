"""Structural similarity of maps (N, H, W), many at once on their device (Wang et al., 2004)."""

import torch
from torch import Tensor

from saliometer.cose.boxes import box_sums
from saliometer.cose.inverse import eroded

WINDOW = 5
ROOM = 1 << 20  # pixels that are compared together on a CPU: what stays in its own memory is faster


def ssim(
    maps: Tensor, others: Tensor, valid: Tensor | None = None, *, data_range: float = 1.0, mirrored: bool = False
) -> Tensor:
    """(N,) float64: the mean over 5x5 windows inside canvas and mask, with sample covariance; NaN where there is none.

    With `mirrored` and a mask, windows may stick out over the canvas, whose border is mirrored, as scikit-image has it.
    """
    if min(maps.shape[-2:]) < WINDOW:
        return maps.new_full((len(maps),), torch.nan, dtype=torch.float64)
    together = max(1, ROOM // maps[0].numel())
    if maps.device.type == "cpu" and len(maps) > together:
        masks = [None] * len(maps) if valid is None else valid.split(together)
        parts = zip(maps.split(together), others.split(together), masks, strict=False)
        return torch.cat([ssim(*part, data_range=data_range, mirrored=mirrored) for part in parts])
    inside = None if valid is None else eroded(valid, WINDOW)
    if mirrored and inside is not None:
        maps, others = _mirrored(maps), _mirrored(others)
    elif inside is not None:
        inside = inside[:, WINDOW // 2 : -(WINDOW // 2), WINDOW // 2 : -(WINDOW // 2)]
    similar = _similar(*_moments(maps, others), (0.01 * data_range) ** 2, (0.03 * data_range) ** 2)
    return _mean(similar, inside)


def global_ssim(maps: Tensor, others: Tensor, valid: Tensor | None = None) -> Tensor:
    """(N,) float64: equation 2 of the paper to the letter: one window, the whole map, with C1 = 0.01 and C2 = 0.03."""
    one, other = (_mean(some.double(), valid) for some in (maps, others))
    a, b = maps.double() - one[:, None, None], others.double() - other[:, None, None]
    var, var_other, cov = (_mean(product, valid) for product in (a * a, b * b, a * b))
    return _similar(one, other, var, var_other, cov, 0.01, 0.03)


def _similar(one: Tensor, other: Tensor, var: Tensor, var_other: Tensor, cov: Tensor, c1: float, c2: float) -> Tensor:
    means = (2 * one * other + c1) / (one.square() + other.square() + c1)
    return means * ((2 * cov + c2) / (var + var_other + c2))


def _moments(maps: Tensor, others: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Means, variances and covariance of every window; maps are shifted by their mean, or flat ones lose all digits."""
    shift, shift_other = (some.mean((1, 2), keepdim=True) for some in (maps, others))
    a, b = maps - shift, others - shift_other
    count = WINDOW * WINDOW
    mean_a, mean_b, aa, bb, ab = (box_sums(some, WINDOW).div_(count) for some in (a, b, a * a, b * b, a * b))
    sample = count / (count - 1)
    var, var_other, cov = aa - mean_a * mean_a, bb - mean_b * mean_b, ab - mean_a * mean_b
    return mean_a + shift, mean_b + shift_other, sample * var, sample * var_other, sample * cov


def _mean(values: Tensor, inside: Tensor | None) -> Tensor:
    """(N,) float64; NaN where nothing is inside."""
    if inside is None:
        return values.mean((1, 2), dtype=torch.float64)
    total = values.double().where(inside, 0.0).sum((1, 2))
    return total / inside.sum((1, 2))


def _mirrored(maps: Tensor) -> Tensor:
    """Two more pixels on every side, the outermost repeated."""
    for dim in (-2, -1):
        first, last = maps.narrow(dim, 0, 2), maps.narrow(dim, maps.shape[dim] - 2, 2)
        maps = torch.cat((first.flip(dim), maps, last.flip(dim)), dim)
    return maps
