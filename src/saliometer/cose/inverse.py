"""What undoes a geometric operation on maps (N, H, W), and which of their pixels come from the image at all."""

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.cose.operations import BINS, GEOMETRIC, OPERATIONS, ROTATE, moved, shifts, turned


def undone(name: str, maps: Tensor, bins: Tensor) -> Tensor:
    """Maps of transformed images, laid back over the image: whole pixels but for turns, which are bilinear."""
    if OPERATIONS[name].kind != GEOMETRIC:
        return maps
    if name == "flip_lr":
        return maps.flip(-1)
    if name == "flip_ud":
        return maps.flip(-2)
    if name == "rotate":
        return turned_back(maps, bins)
    along = OPERATIONS[name].along
    return moved(maps, -shifts(bins, maps.shape[along]), along)


def validity(name: str, bins: Tensor, like: Tensor, *, partly: bool = False) -> Tensor | None:
    """(N, H, W) bool on the device of `like` (N, H, W): pixels that survive the way there and back; None where all do.

    With `partly` a pixel counts that a turn fills in part, as in the authors' code; its map is then darker than it was.
    """
    if name.startswith("translate"):
        along = OPERATIONS[name].along
        by = shifts(bins, like.shape[along])
        return moved(moved(torch.ones_like(like), by, along), -by, along) > 0
    if name == "rotate":
        filled = turned_back(turned(torch.ones_like(like)[:, None], bins)[:, 0], bins)
        return filled > (0 if partly else 1 - 1e-4)
    return None


def eroded(valid: Tensor, window: int = 5) -> Tensor:
    """(N, H, W) bool: pixels whose whole window is valid; beyond the canvas counts as valid."""
    padded = F.pad(valid, [window // 2] * 4, value=True)
    for dim in (-2, -1):
        side = padded.shape[dim] - window + 1
        whole = padded.narrow(dim, 0, side)
        for start in range(1, window):
            whole = whole & padded.narrow(dim, start, side)
        padded = whole
    return padded


def turned_back(maps: Tensor, bins: Tensor) -> Tensor:
    """Clockwise about the centre, bilinear, 0 beyond the canvas.

    On a canvas widened to powers of two places have no rounding error: a right angle moves values and changes none.
    """
    height, width = maps.shape[-2:]
    high, wide = (1 << (side - 1).bit_length() for side in (height, width))
    cos, sin = _angles(bins.device)[bins + BINS].to(maps).unbind(1)
    cos, sin = cos[:, None, None], sin[:, None, None]
    y, x = (torch.arange(side, dtype=maps.dtype, device=maps.device) - (side - 1) / 2 for side in (height, width))
    y = y[:, None]
    across, down = cos * x + sin * y + width / 2, cos * y - sin * x + height / 2
    grid = torch.stack((across * (2 / wide) - 1, down * (2 / high) - 1), -1)
    canvas = F.pad(maps[:, None], (0, wide - width, 0, high - height))
    return F.grid_sample(canvas, grid, padding_mode="zeros", align_corners=False)[:, 0]


@lru_cache(maxsize=16)
def _angles(device: torch.device) -> Tensor:
    """(61, 2) float64: the cosine and sine of every bin's angle, exact at right angles."""
    degrees = [ROTATE.magnitude(number) for number in range(-BINS, BINS + 1)]
    pairs = [(math.cos(math.radians(d)), math.sin(math.radians(d))) for d in degrees]
    exact = [(round(c), round(s)) if d % 90 == 0 else (c, s) for d, (c, s) in zip(degrees, pairs, strict=True)]
    return torch.tensor(exact, dtype=torch.float64, device=device)
