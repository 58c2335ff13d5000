"""How alike two stacks of maps are, map by map on their device: ranks, structure, oriented gradients.

The measures of Adebayo et al. (2018), each with how it reads maps. Every one has two halves, so that maps which are
compared with many others are read once: `read` makes of attributions (N, C, H, W) what `compare` takes twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.correlation import mean_ranks
from saliometer.cose.scaling import percentile, scaled
from saliometer.cose.ssim import ssim as ssim_5x5
from saliometer.maps import edges
from saliometer.registry import one_of

SCALINGS = ("plain", "published", "second_moment")
CELL, CELLS, ORIENTATIONS = 16, 3, 9  # of a HOG: pixels, cells of a block, bins of 180 degrees
SIGMA, RADIUS = 1.5, 5  # of SSIM's window
SAMPLE = (2 * RADIUS + 1) ** 2 / ((2 * RADIUS + 1) ** 2 - 1)  # from its mean square to a sample's variance
CLIP = 0.99
SIMILARITIES = ("spearman_abs", "spearman", "ssim", "hog", "hog_spearman", "ssim_5x5")
USUAL = SIMILARITIES[:4]  # of those, what is measured unless one is named
FLAT = "a constant map has no similarity"
Read = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Similarity:
    """One measure: `read` (N, C, H, W) once, `compare` what was read, (N,) float64; NaN where there is none."""

    name: str
    read: Read
    compare: Callable[[Tensor, Tensor], Tensor]
    why: str  # what is the matter where it is NaN


def spearman(maps: Tensor, others: Tensor, *, absolute: bool = True, valid: Tensor | None = None) -> Tensor:
    """(N,): the rank correlation of pixels, channels summed; without signs unless told; of `valid` pixels (N, H, W)."""
    one, other = (ranked(joined(some, absolute), valid) for some in (maps, others))
    return _product(one, other)


def ssim(maps: Tensor, others: Tensor) -> Tensor:
    """(N,): structural similarity under a Gaussian window, mean over channels, each attribution from 0 to 1."""
    return gaussian_ssim(spread(maps), spread(others))


def hog_similarity(maps: Tensor, others: Tensor, *, ranks: bool = False) -> Tensor:
    """(N,): the correlation of histograms of oriented gradients, Pearson's or of their ranks."""
    one, other = (_hog_vector(some, ranks) for some in (maps, others))
    return _product(one, other)


# What they read


def joined(maps: Tensor, absolute: bool) -> Tensor:
    """(N, H, W): the sum over channels."""
    maps = maps if maps.ndim == 4 else maps[:, None]
    return (maps.abs() if absolute else maps).sum(1)


def ranked(maps: Tensor, valid: Tensor | None = None) -> Tensor:
    """(N, H * W) float64: ranks as a vector of mean 0 and length 1; pixels that do not count are 0."""
    flat = maps.flatten(1)
    broken = ~flat.isfinite().all(1, keepdim=True)
    if valid is None:
        return _unit(mean_ranks(flat)).where(~broken, torch.nan)
    inside = valid.flatten(1)
    ranks = mean_ranks(flat.double().where(inside, torch.inf))
    mean = ranks.where(inside, 0).sum(1, keepdim=True) / inside.sum(1, keepdim=True)
    return _unit(ranks.where(inside, mean)).where(~broken, torch.nan)


def spread(maps: Tensor) -> Tensor:
    """(N, C, H, W) from 0 to 1 over all channels together; NaN where they are all the same."""
    maps = maps if maps.ndim == 4 else maps[:, None]
    low, high = (edge.view(-1, 1, 1, 1) for edge in edges(maps))
    return (maps - low) / (high - low)


def second_moment(maps: Tensor) -> Tensor:
    """(N, C, H, W) with a mean square of 1, the sign kept; NaN where they are all 0 (Binder et al., 2023)."""
    maps = maps if maps.ndim == 4 else maps[:, None]
    scale = maps.flatten(1).abs().amax(1).view(-1, 1, 1, 1)  # first, so that no square is lost
    maps = maps / scale
    return maps / maps.square().mean((1, 2, 3), keepdim=True).sqrt()


def clipped(maps: Tensor, absolute: bool) -> Tensor:
    """(N, H, W) as the authors show maps: cut at the 99th percentile, which makes ties."""
    flat = joined(maps, absolute).flatten(1)
    most = percentile(flat, CLIP)[:, None]
    if absolute:
        low = flat.amin(1, keepdim=True)
        found = ((flat - low) / (most - low)).clamp(0, 1)
    else:
        found = ((flat + most.abs()) / (2 * most.abs())).clamp(-1, 1)
    return found.view(len(maps), *maps.shape[-2:])


def _unit(values: Tensor) -> Tensor:
    """(N, K) of mean 0 and length 1; NaN where they are all the same."""
    values = values - values.mean(1, keepdim=True)
    return values / values.square().sum(1, keepdim=True).sqrt()


def _product(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(1).clamp(-1, 1)


# Structure


def gaussian_ssim(maps: Tensor, others: Tensor) -> Tensor:
    """(N,) float64 of (N, C, H, W) in [0, 1]: windows inside the map, sample covariance, as scikit-image has it."""
    return _structure(_windows(maps), _windows(others))


def _windows(maps: Tensor) -> Tensor:
    """(N, 4, C, H, W): maps less their mean, that mean, and what they have alone under every window: mean and variance.

    Maps are shifted by their mean, or flat ones lose all digits. Those too small for a window stay as they are.
    """
    if _is_small(maps.shape):
        return maps
    shift = maps.mean((1, 2, 3), keepdim=True)
    shifted = maps - shift
    mean, square = _smoothed(torch.stack((shifted, shifted * shifted)))
    alone = (F.pad(some, (RADIUS,) * 4) for some in (mean, SAMPLE * (square - mean**2)))
    return torch.stack((shifted, shift.expand_as(maps), *alone), 1)


def _structure(one: Tensor, other: Tensor) -> Tensor:
    """(N,) float64: SSIM of what `_windows` gave for two stacks of maps; only their product has to be smoothed."""
    if _is_small(one.shape):
        return one.new_full((len(one),), torch.nan, dtype=torch.float64)
    covariance = _smoothed(one[:, 0] * other[:, 0])
    inside = slice(RADIUS, -RADIUS)
    (shift, mean, var), (shift_other, mean_other, var_other) = (
        some[:, 1:, :, inside, inside].unbind(1) for some in (one, other)
    )
    covariance = SAMPLE * (covariance - mean * mean_other)
    mean, mean_other = mean + shift, mean_other + shift_other
    c1, c2 = 0.01**2, 0.03**2
    found: Tensor = (2 * mean * mean_other + c1) * (2 * covariance + c2)
    found = found / ((mean**2 + mean_other**2 + c1) * (var + var_other + c2))
    return found.mean((1, 2, 3), dtype=torch.float64)


def _is_small(shape: Sequence[int]) -> bool:
    return min(shape[-2:]) <= 2 * RADIUS


def _smoothed(maps: Tensor) -> Tensor:
    """Weighed sums under the window wherever it lies inside; by shifts, which no kernel rounds."""
    offsets = torch.arange(-RADIUS, RADIUS + 1, dtype=torch.float64)
    weights = (-0.5 * (offsets / SIGMA).square()).exp()
    for dim in (-2, -1):
        size = maps.shape[dim] - 2 * RADIUS
        total = torch.zeros_like(maps.narrow(dim, 0, size))
        for place, weight in enumerate((weights / weights.sum()).tolist()):
            total.add_(maps.narrow(dim, place, size), alpha=weight)
        maps = total
    return maps


# Oriented gradients


def cell_for(shape: Sequence[int]) -> int:
    """16 pixels, or what leaves three cells on a small map's shorter side."""
    return max(1, min(CELL, min(shape[-2:]) // CELLS))


def hog(maps: Tensor, cell: int = CELL) -> Tensor:
    """(N, K) float64: histograms of oriented gradients of (N, C, H, W), blocks of 3x3 cells, L2-Hys; scikit-image's."""
    rows, columns = _differences(maps.double(), -2), _differences(maps.double(), -1)
    strongest = (rows.square() + columns.square()).argmax(1, keepdim=True)  # the channel that counts at each pixel
    down, across = rows.gather(1, strongest)[:, 0], columns.gather(1, strongest)[:, 0]
    size, angle = torch.hypot(across, down), torch.rad2deg(torch.atan2(down, across)).remainder(180)
    places = (angle / (180 / ORIENTATIONS)).floor().clamp(max=ORIENTATIONS)
    high, wide = size.shape[-2] // cell, size.shape[-1] // cell
    cells = torch.stack([_cell_means(size.where(places == k, 0), cell, high, wide) for k in range(ORIENTATIONS)], -1)
    blocks = cells.unfold(1, CELLS, 1).unfold(2, CELLS, 1)  # (N, rows, columns, orientations, 3, 3)
    flat = blocks.permute(0, 1, 2, 4, 5, 3).flatten(3)
    flat = flat / (flat.square().sum(-1, keepdim=True) + 1e-10).sqrt()
    flat = flat.clamp(max=0.2)
    found: Tensor = (flat / (flat.square().sum(-1, keepdim=True) + 1e-10).sqrt()).flatten(1)
    return found


def _differences(maps: Tensor, dim: int) -> Tensor:
    """Central differences, 0 at the border."""
    inner = maps.shape[dim] - 2
    found = torch.zeros_like(maps)
    found.narrow(dim, 1, inner).copy_(maps.narrow(dim, 2, inner) - maps.narrow(dim, 0, inner))
    return found


def _cell_means(values: Tensor, cell: int, high: int, wide: int) -> Tensor:
    cut = values[:, : high * cell, : wide * cell]
    found: Tensor = cut.unflatten(2, (wide, cell)).unflatten(1, (high, cell)).mean((2, 4))
    return found


def _hog_vector(maps: Tensor, ranks: bool, read: Read = spread) -> Tensor:
    read_maps = read(maps)
    found = hog(read_maps, cell_for(maps.shape))
    broken = ~read_maps.flatten(1).isfinite().all(1, keepdim=True)
    return _unit(mean_ranks(found) if ranks else found).where(~broken, torch.nan)


# By name


def stage_of(name: str, scaling: str) -> str:
    """How a similarity reads attributions, as rows name it."""
    one_of("similarity", name, SIMILARITIES)
    one_of("scaling", scaling, SCALINGS)
    if name.startswith("spearman"):
        joined_by = "abs_sum" if name == "spearman_abs" else "sum"
        return {"published": f"{joined_by}_clip99"}.get(scaling, joined_by)  # ranks know no scale
    if name == "ssim_5x5":
        return "abs_sum_percentile"
    return "second_moment" if scaling == "second_moment" else "joint_minmax"


def similarity(name: str, shape: Sequence[int], scaling: str = "plain", valid: Tensor | None = None) -> Similarity:
    """One of SIMILARITIES for attributions of this shape (..., H, W); ranks are those of `valid` pixels (N, H, W)."""
    stage_of(name, scaling)
    read = second_moment if scaling == "second_moment" else spread
    if name.startswith("spearman"):
        absolute = name == "spearman_abs"
        made = clipped if scaling == "published" else joined
        return Similarity(name, lambda maps: ranked(made(maps, absolute), valid), _product, FLAT)
    if name == "ssim":
        why = f"SSIM wants {2 * RADIUS + 1} pixels a side" if _is_small(shape) else FLAT
        return Similarity(name, lambda maps: _windows(read(maps)), _structure, why)
    if name == "ssim_5x5":
        return Similarity(name, scaled, ssim_5x5, "SSIM wants 5 pixels a side")
    return Similarity(name, partial(_hog_vector, ranks=name == "hog_spearman", read=read), _product, FLAT)
