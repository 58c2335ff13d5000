"""Pictures blended, made coarse, turned and cut (fidelity.md, Table 4): pixels (N, C, H, W) in [0, 1], size kept."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import Entry, Facts, Spec, one_of, unknown
from saliometer.seeds import forks

BORDERS = {"black": "zeros", "reflect": "reflection"}
VARIATIONS = {  # the four of each that Table 4 shows
    "mixup": tuple(f"mixup(weight={weight})" for weight in (0.5, 0.6, 0.7, 0.8)),
    "resize": tuple(f"resize(side={side})" for side in (32, 64, 96, 128)),
    "rotation": tuple(f"rotation(degrees={degrees})" for degrees in (45, 90, 135, 180)),
    "crop": tuple(f"crop(area={area})" for area in (0.8, 0.6, 0.4, 0.25)),
}


def mixup(pixels: Tensor, labels: Tensor, seed: int, *, weight: float = 0.5) -> Tensor:
    """A blend with a picture of another class, of which `1 - weight` is seen; the partners come from `partners`."""
    if not 0.5 <= weight <= 1:
        raise ValueError(f"transform 'mixup': weight={weight}, wanted 0.5 to 1, so that the first picture is scored")
    return torch.lerp(pixels[partners(labels, seed).to(pixels.device)], pixels, weight)


def resize(pixels: Tensor, labels: Tensor, seed: int, *, side: int = 32) -> Tensor:
    """Made smaller until the shorter side has `side` pixels, and large again: fine detail is gone."""
    height, width = pixels.shape[-2:]
    if not 1 <= side <= min(height, width):
        raise ValueError(f"transform 'resize': side={side}, wanted 1 to {min(height, width)} pixels")
    small = (round(side * height / min(height, width)), round(side * width / min(height, width)))
    return _scaled(_scaled(pixels, small), (height, width))


def rotation(pixels: Tensor, labels: Tensor, seed: int, *, degrees: float = 45.0, border: str = "black") -> Tensor:
    """Turned counter-clockwise about the centre; beyond the picture it is black, or its own reflection."""
    outside = BORDERS[one_of("border", border, BORDERS)]
    height, width = pixels.shape[-2:]
    turns, left = divmod(degrees / 90, 1)
    if left == 0 and (turns % 2 == 0 or height == width):
        return pixels.rot90(int(turns) % 4, (-2, -1))  # every pixel on a pixel
    angle = math.radians(degrees)
    rows, columns = (torch.arange(size, dtype=pixels.dtype, device=pixels.device) for size in (height, width))
    down, right = (rows - (height - 1) / 2)[:, None], columns - (width - 1) / 2
    source_right = math.cos(angle) * right - math.sin(angle) * down
    source_down = math.sin(angle) * right + math.cos(angle) * down
    grid = torch.stack((2 * source_right / width, 2 * source_down / height), -1)
    return F.grid_sample(pixels, grid.expand(len(pixels), -1, -1, -1), padding_mode=outside, align_corners=False)


def crop(pixels: Tensor, labels: Tensor, seed: int, *, area: float = 0.8) -> Tensor:
    """The centre that holds this share of the area, as large as the picture was."""
    if not 0 < area <= 1:
        raise ValueError(f"transform 'crop': area={area}, wanted more than 0 and at most 1")
    size = tuple(pixels.shape[-2:])
    kept = [max(1, round(side * math.sqrt(area))) for side in size]
    top, left = ((side - keep) // 2 for side, keep in zip(size, kept, strict=True))
    return _scaled(pixels[..., top : top + kept[0], left : left + kept[1]], size)


def partners(labels: Tensor, seed: int) -> Tensor:
    """(N,) int64: for each picture one of another class, each picture used once, by lot.

    Pictures are put in a row, class after class in an order drawn by seed; each is given the one that lies as many
    places on as the largest class has members, which is of another class unless that class is more than half of all.
    """
    count = len(labels)
    sizes = labels.unique(return_counts=True)[1]
    if not count or int(sizes.max()) * 2 > count:
        most = int(sizes.max()) if count else 0
        raise ValueError(f"mixup needs partners of another class, but {most} of {count} pictures are of one class")
    lots = forks(seed, torch.arange(count))
    classes = forks(seed, labels.cpu() + count)  # the classes' own lots
    row = lots.argsort(stable=True)
    row = row[classes[row].argsort(stable=True)]
    found = torch.empty(count, dtype=torch.int64)
    found[row] = row.roll(-int(sizes.max()))
    return found


def transformed(text: str, pixels: Tensor, labels: Tensor, seed: int) -> Tensor:
    """Pixels under a transform by its Spec, such as `rotation(degrees=45)`."""
    entry, given = parsed(text)
    found: Tensor = entry.function(pixels, labels, seed, **given)
    return found


def parsed(text: str) -> tuple[Entry, dict[str, Any]]:
    """The transform of a Spec and its parameters, checked."""
    spec = Spec.parse(text)
    if spec.name not in TRANSFORMS:
        raise LookupError(unknown("transform", spec.name, TRANSFORMS))
    entry = Entry(spec.name, TRANSFORMS[spec.name], Facts())
    spec.check("transform", entry)
    return entry, dict(spec.params)


def _scaled(pixels: Tensor, size: tuple[int, ...]) -> Tensor:
    if tuple(pixels.shape[-2:]) == size:
        return pixels
    return F.interpolate(pixels, size=size, mode="bilinear", antialias=True, align_corners=False)


TRANSFORMS: Mapping[str, Callable[..., Tensor]] = {one.__name__: one for one in (mixup, resize, rotation, crop)}
