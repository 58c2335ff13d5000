"""Attribution to map: the named ways to join channels and sign, to pick the highest pixels, and the checks."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import one_of
from saliometer.seeds import uniform

DEFINITIONS = ("clean", "clean_positive", "authors")


def checked(maps: object, name: str, images: Tensor) -> Tensor:
    """(N, C or 1, H, W) in the images' type, or an error that says what came: one value per pixel is wanted."""
    count, channels, height, width = images.shape
    shapes = [(count, channels, height, width), (count, 1, height, width), (count, height, width)]
    wanted = " or ".join((", ".join(map(str, shapes[:2])), str(shapes[2])))
    if isinstance(maps, np.ndarray) and maps.dtype.kind in "fiub":
        maps = torch.from_numpy(np.ascontiguousarray(maps))
    if not isinstance(maps, Tensor):
        raise ValueError(f"method '{name}' returned {type(maps).__name__}, wanted a tensor or array of shape {wanted}")
    if tuple(maps.shape) not in shapes:
        came = tuple(maps.shape)
        raise ValueError(f"method '{name}' returned shape {came}, wanted {wanted}: one value per pixel")
    if maps.is_complex():
        raise ValueError(f"method '{name}' returned {maps.dtype}, wanted real numbers")
    maps = maps.detach().to(images)
    return maps[:, None] if maps.ndim == 3 else maps


def finite(values: Tensor) -> bool:
    """Whether all values are: both ends say so, for they are NaN if any value is; one look at a large tensor."""
    return all(map(math.isfinite, torch.stack(values.aminmax()).tolist()))


def edges(values: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) each: the smallest and the largest value of each image, NaN if any is.

    A CPU is many times as slow with `aminmax` along a dimension, and with truth values for each pixel.
    """
    flat = values.flatten(1)
    return flat.amin(1), flat.amax(1)


def complaints(maps: Tensor) -> list[str]:
    """What is odd about each of (N, C, H, W) maps, in words for a row's note: '' where nothing is."""
    return [_complaint(low, high) for low, high in zip(*torch.stack(edges(maps)).tolist(), strict=True)]


def _complaint(low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return "nan map"
    return "zero map" if low == high == 0 else "constant map" if low == high else ""


def collapsed(maps: Tensor, definition: str, rendering: str) -> Tensor:
    """(N, H, W) float64, never negative: what a metric's named definition reads from signed (N, C, H, W) maps."""
    one_of("definition", definition, DEFINITIONS)
    if definition == "authors":
        return blurred(RENDERINGS[rendering](maps.double()))
    joined = maps.double().sum(1)
    return joined.abs() if definition == "clean" else joined.relu()


def dead(maps: Tensor, definition: str) -> Tensor:
    """(N,) bool: collapsed maps that cannot be scored, because they are NaN or empty under this definition."""
    flat = maps.flatten(1)
    lowest = flat.amin(1) if definition == "authors" else 0.0  # the authors subtract the minimum first
    return ~((flat.amax(1) - lowest) > 0) | ~flat.isfinite().all(1)


def top(maps: Tensor, counts: Tensor, seeds: Tensor) -> Tensor:
    """(N, H, W) bool: the `counts` highest pixels of each map; ties fall by seed, so a flat map scores chance."""
    flat = maps.flatten(1)
    threshold = flat.sort(1, descending=True).values.gather(1, (counts - 1).clamp(min=0)[:, None])
    chosen = flat >= threshold
    crowded = (chosen.sum(1) > counts).nonzero()[:, 0]
    if len(crowded):
        flat, threshold, counts = flat[crowded], threshold[crowded], counts[crowded]
        above, tied = flat > threshold, flat == threshold
        lots = uniform(seeds[crowded], "ties", flat.shape[1]).masked_fill(~tied, -1.0)
        order = lots.argsort(dim=1, descending=True, stable=True).argsort(dim=1, stable=True)
        chosen[crowded] = above | (tied & (order < (counts - above.sum(1))[:, None]))
    return chosen.view_as(maps)


# The battery's own stage: what a metric reads of an attribution, and the named ways to bring it to [0, 1].

STAGES = ("scaled", "order", "signed", "attribution")
NORMALISATIONS = ("abs_max_minmax", "abs_joint_minmax", "signed_max_minmax", "signed_joint_minmax")


def staged(maps: Tensor, reads: str, normalisation: str) -> Tensor:
    """What a metric reads of signed (N, C, H, W) maps.

    `scaled` is (N, H, W) in [0, 1], NaN where a map is constant; `order` (N, H, W) before scaling, for metrics that
    look at ranks alone; `signed` (N, H, W), the sum over channels; `attribution` (N, C, H, W) as it is.
    """
    one_of("stage", reads, STAGES)
    one_of("normalisation", normalisation, NORMALISATIONS)
    if reads == "attribution":
        return maps
    if reads == "signed":
        return maps.sum(1)
    values = maps.abs() if normalisation.startswith("abs") else maps
    if reads == "order":
        return values.amax(1)
    return minmax(values).amax(1) if "joint" in normalisation else minmax(values.amax(1))


def stage_name(reads: str, normalisation: str) -> str:
    """The word that stands in a row's definition."""
    return {"scaled": normalisation, "order": normalisation.split("_")[0] + "_max"}.get(reads, reads)


def minmax(maps: Tensor) -> Tensor:
    """Each image's values from exactly 0 to exactly 1; NaN where they are all the same."""
    low, high = (edge.view(-1, *[1] * (maps.ndim - 1)) for edge in edges(maps))
    return (maps - low) / (high - low)


TIES = ("seed", "rise")


def ranks(maps: Tensor, seeds: Tensor, *, ties: str = "seed", draw: int = 0) -> Tensor:
    """(N, H, W) int64: 0 for the highest pixel. Equal ones fall by lot, or as RISE has it, by descending place."""
    one_of("ties", ties, TIES)
    flat = maps.flatten(1)
    order = flat.sort(dim=1, stable=True).indices.flip(1) if ties == "rise" else _falling(flat)
    if order is None:
        lots = uniform(seeds, f"ties {draw}" if draw else "ties", flat.shape[1]).argsort(1)
        order = lots.gather(1, flat.gather(1, lots).sort(dim=1, descending=True, stable=True).indices)
    places = torch.arange(flat.shape[1], device=flat.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places).view_as(maps)


def _falling(flat: Tensor) -> Tensor | None:
    """The one order of values that all differ; None where some do not, or where to look would keep a GPU waiting."""
    if flat.device.type != "cpu":
        return None
    values, order = flat.sort(dim=1, descending=True)
    return None if bool((values[:, 1:] == values[:, :-1]).any()) else order


# How the authors of SMERF read a map: rendered as a picture, read back as darkness or brightness, then blurred.


def _gray(maps: Tensor) -> Tensor:
    """Brightness of a grey picture: linear in the absolute attribution, in 256 levels."""
    strength = maps.abs().sum(1)
    return (_over(strength, strength.amax((1, 2))) * 255).floor() / 255


def _heat(maps: Tensor) -> Tensor:
    """Darkness of the 'seismic' picture: compressive and blind to sign."""
    joined = maps.sum(1)
    relative = _over(joined, joined.abs().amax((1, 2)))
    return _darkness(maps)[((relative + 1) / 2 * 255).nan_to_num(0).long()] + (relative - relative)  # NaN stays NaN


def _darkness(like: Tensor) -> Tensor:
    """(256,): 1 minus the mean of red, green and blue of matplotlib's 'seismic'."""
    corners = like.new_tensor([[0, 0, 0.3], [0, 0, 1], [1, 1, 1], [1, 0, 0], [0.5, 0, 0]])  # at 0, 1/4, 1/2, 3/4, 1
    place = torch.linspace(0, 4, 256, dtype=like.dtype, device=like.device)
    below = place.long().clamp(max=3)
    share = (place - below)[:, None]
    return 1 - (corners[below] * (1 - share) + corners[below + 1] * share).mean(1)


def _proj(maps: Tensor) -> Tensor:
    """Brightness of a picture in which zero is grey; cut at each image's 1st and 99th percentile."""
    flat = maps.flatten(1)
    low, high = (flat.quantile(share, 1).view(-1, 1, 1, 1) for share in (0.01, 0.99))
    cut = maps.clamp(low, high)
    return ((_over(cut.flatten(1)[:, None], cut.abs().amax((1, 2, 3))).view_as(maps) + 1) / 2 + (maps - maps)).amax(
        1
    )  # NaN stays NaN


def _shap(maps: Tensor) -> Tensor:
    """DeepSHAP's values from 0 to 1 over all pixels and channels, sign kept."""
    low, high = maps.amin((1, 2, 3), keepdim=True), maps.amax((1, 2, 3), keepdim=True)
    return ((maps - low) / (high - low).where(high > low, 1)).amax(1)


def _raw(maps: Tensor) -> Tensor:
    return maps.amax(1)


def _raw_heat(maps: Tensor) -> Tensor:
    """Never rendered, yet read back as if it were: 1 minus the mean."""
    return 1 - maps.mean(1)


def _raw_heat_scaled(maps: Tensor) -> Tensor:
    low, high = maps.amin((1, 2, 3), keepdim=True), maps.amax((1, 2, 3), keepdim=True)
    return _raw_heat((maps - low) / (high - low).where(high > low, 1))


RENDERINGS = {
    "gray": _gray,
    "proj": _proj,
    "shap": _shap,
    "heat": _heat,
    "raw": _raw,
    "raw_heat": _raw_heat,
    "raw_heat_scaled": _raw_heat_scaled,
}


def _over(values: Tensor, most: Tensor) -> Tensor:
    return values / most.where(most != 0, 1)[:, None, None]


def blurred(maps: Tensor) -> Tensor:
    """The 7x7 box blur of OpenCV with its mirrored border."""
    return F.avg_pool2d(F.pad(maps[:, None], (3, 3, 3, 3), mode="reflect"), 7, stride=1)[:, 0]
