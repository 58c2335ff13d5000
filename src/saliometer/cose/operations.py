"""The 13 operations of COSE on 8-bit pixels (N, C, H, W), to the level as PIL and torchvision have them.

Every image has its own magnitude, given as a signed bin (N,) int64, -30 to 30; fixed operations take none. With bins
where the images are, nothing waits for the device.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
from torch import Tensor

from saliometer.cose.boxes import box_sums

GEOMETRIC, PHOTOMETRIC = "geometric", "photometric"
BINS = 30
SIDE = 224  # the side that translations are given for
BLUR, SMOOTH = ((5, 1), (3, -1)), ((3, 1), (1, 4))  # PIL's kernels as squares laid over each other: side, weight
SMALLEST = 5  # pixels of a side that the kernel of the blur takes


@dataclass(frozen=True)
class Operation:
    """`most` is the magnitude of bin 30, 0 for an operation that has none; `along` the dimension it moves along."""

    name: str
    kind: str
    most: float
    apply: Callable[[Tensor, Tensor], Tensor]
    along: int = 0

    def magnitude(self, number: int) -> float:
        """Of a signed bin: pixels at side 224, degrees, or what is added to a factor of 1."""
        return math.copysign(_magnitudes(self.most)[abs(number)], number) if number else 0.0

    def label(self, number: int, shape: Sequence[int]) -> str:
        """What rows call it in their condition, on images of shape (..., H, W)."""
        if not self.most:
            return self.name
        side = f",side={shape[self.along]}" if self.along else ""
        return f"{self.name}(bin={number},magnitude={self.magnitude(number):.6g}{side})"


def shifts(bins: Tensor, side: int) -> Tensor:
    """(N,) int64: whole pixels that a translation moves; magnitudes grow with the side, so that bin 30 is 1/7 of it."""
    return (_table(32.0, bins.device)[bins.abs()] * side / SIDE).trunc().long() * bins.sign()


@lru_cache
def _magnitudes(most: float) -> tuple[float, ...]:
    """In single precision, as torchvision has them: 31.9999 px would be one pixel less."""
    return tuple(torch.linspace(0, most, BINS + 1).tolist())


@lru_cache(maxsize=16)
def _table(most: float, device: torch.device) -> Tensor:
    """(31,) float64: the magnitudes where they are looked up."""
    return torch.tensor(_magnitudes(most), dtype=torch.float64, device=device)


def moved(images: Tensor, by: Tensor, dim: int) -> Tensor:
    """Each image moved by its own number of pixels along a dimension, right or down; what is uncovered is 0."""
    side, count = images.shape[dim], images.ndim
    source = torch.arange(side, device=images.device) - by.to(images.device)[:, None]  # (N, side)
    shape = [1] * count
    shape[0], shape[dim] = len(images), side
    inside = ((source >= 0) & (source < side)).view(shape)
    found = images.gather(dim % count, source.clamp(0, side - 1).view(shape).expand_as(images))
    return found * inside


def turned(images: Tensor, bins: Tensor) -> Tensor:
    """Counter-clockwise about the centre, nearest pixel, black beyond: in the fixed point arithmetic of PIL."""
    height, width = images.shape[-2:]
    across, down, start_x, across_y, down_y, start_y = (
        _turns(height, width, bins.device)[bins + BINS].to(images.device).unbind(1)  # (N,) each
    )
    y, x = (torch.arange(side, device=images.device) for side in (height, width))

    def source(per_x: Tensor, per_y: Tensor, start: Tensor) -> Tensor:
        steps = per_x[:, None, None] * x + per_y[:, None, None] * y[:, None]
        return (steps + start[:, None, None]) >> 16  # (N, H, W)

    column, row = source(across, down, start_x), source(across_y, down_y, start_y)
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    found = images.flatten(2).gather(2, place.flatten(1)[:, None].expand(-1, images.shape[1], -1))
    return found.view_as(images) * inside[:, None]


@lru_cache(maxsize=16)
def _turns(height: int, width: int, device: torch.device) -> Tensor:
    """(61, 6) int64: for every bin from -30 the affine map from a pixel to its source, in 1/65536 of a pixel."""
    found = []
    for number in range(-BINS, BINS + 1):
        degrees = ROTATE.magnitude(number)
        angle = -math.radians(degrees % 360.0)
        a, b = round(math.cos(angle), 15), round(math.sin(angle), 15)
        d, e = round(-math.sin(angle), 15), round(math.cos(angle), 15)
        if degrees % 90 == 0:  # every pixel on a pixel
            a, b, d, e = (float(round(value)) for value in (a, b, d, e))
        x, y = width / 2.0, height / 2.0
        c, f = a * -x + b * -y + x, d * -x + e * -y + y
        found.append([_fixed(value) for value in (a, b, c + a * 0.5 + b * 0.5, d, e, f + d * 0.5 + e * 0.5)])
    return torch.tensor(found, device=device)


def _fixed(value: float) -> int:
    return math.floor(value * 65536.0 + 0.5)


def blended(background: Tensor, images: Tensor, magnitudes: Tensor) -> Tensor:
    """From a plain image to the image and as far beyond: factor 1 + magnitude, cut to whole levels as PIL does."""
    factor = (1.0 + magnitudes).to(torch.float32).to(images.device).view(-1, 1, 1, 1)
    plain = background.to(torch.float32)
    return (plain + factor * (images.to(torch.float32) - plain)).clamp_(0, 255).to(torch.uint8)


def brightness(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blended(torch.zeros_like(images), images, magnitudes)


def color(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blended(gray(images).expand_as(images), images, magnitudes)


def contrast(images: Tensor, magnitudes: Tensor) -> Tensor:
    mean = (gray(images).double().mean((1, 2, 3), keepdim=True) + 0.5).floor()
    return blended(mean.expand_as(images), images, magnitudes)


def sharpness(images: Tensor, magnitudes: Tensor) -> Tensor:
    return blended(filtered(images, SMOOTH), images, magnitudes)


def gray(images: Tensor) -> Tensor:
    """(N, 1, H, W) uint8: the luminance of colour images, in PIL's integers."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.to(torch.int32).unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).to(torch.uint8)[:, None]


def filtered(images: Tensor, squares: Sequence[tuple[int, int]]) -> Tensor:
    """The weighted mean of the neighbours; where the kernel would look outside, the image stays as it is."""
    edge, total = squares[0][0] // 2, sum(side * side * weight for side, weight in squares)
    levels = images.to(torch.int16)
    sums = box_sums(levels, squares[0][0]) * squares[0][1]
    for side, weight in squares[1:]:
        cut = edge - side // 2
        sums += weight * box_sums(levels[..., cut:-cut, cut:-cut], side)
    found = images.clone()
    found[..., edge:-edge, edge:-edge] = (sums.to(torch.float32) * (1 / total) + 0.5).to(torch.uint8)
    return found


def auto_contrast(images: Tensor) -> Tensor:
    """Each channel's levels spread from 0 to 255; a channel of one level stays."""
    flat = images.flatten(2).double()
    low, high = flat.amin(2, keepdim=True), flat.amax(2, keepdim=True)
    scale = torch.full_like(low, 255.0) / (high - low).clamp(min=1)  # a true division: 1 / x * 255 rounds otherwise
    spread = (flat * scale + -low * scale).clamp(0, 255).where(high > low, flat)
    return spread.to(torch.uint8).view_as(images)


def equalize(images: Tensor) -> Tensor:
    """Each channel's levels by how many pixels are darker, in PIL's integers."""
    levels = images.flatten(2).flatten(0, 1).long()  # (N C, pixels)
    counts = torch.zeros(len(levels), 256, dtype=torch.int64, device=images.device)
    counts.scatter_add_(1, levels, torch.ones_like(levels))
    step = ((levels.shape[1] - counts.gather(1, levels.amax(1, keepdim=True))) // 255).clamp(min=0)
    darker = counts.cumsum(1) - counts
    table = ((step // 2 + darker) // step.clamp(min=1)).clamp(max=255)
    same = torch.arange(256, device=images.device).expand_as(table)
    return table.where(step > 0, same).gather(1, levels).to(torch.uint8).view_as(images)


def _enhanced(apply: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def by_bin(images: Tensor, bins: Tensor) -> Tensor:
        return apply(images, _table(0.99, bins.device)[bins.abs()] * bins.sign())

    return by_bin


def _fixed_one(apply: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda images, _: apply(images)


def _translated(images: Tensor, bins: Tensor, dim: int) -> Tensor:
    return moved(images, shifts(bins, images.shape[dim]), dim)


ROTATE = Operation("rotate", GEOMETRIC, 135.0, turned)
OPERATIONS = {
    one.name: one
    for one in (
        Operation("translate_x", GEOMETRIC, 32.0, partial(_translated, dim=-1), -1),
        Operation("translate_y", GEOMETRIC, 32.0, partial(_translated, dim=-2), -2),
        ROTATE,
        Operation("flip_lr", GEOMETRIC, 0.0, _fixed_one(lambda images: images.flip(-1))),
        Operation("flip_ud", GEOMETRIC, 0.0, _fixed_one(lambda images: images.flip(-2))),
        Operation("brightness", PHOTOMETRIC, 0.99, _enhanced(brightness)),
        Operation("color", PHOTOMETRIC, 0.99, _enhanced(color)),
        Operation("contrast", PHOTOMETRIC, 0.99, _enhanced(contrast)),
        Operation("sharpness", PHOTOMETRIC, 0.99, _enhanced(sharpness)),
        Operation("auto_contrast", PHOTOMETRIC, 0.0, _fixed_one(auto_contrast)),
        Operation("equalize", PHOTOMETRIC, 0.0, _fixed_one(equalize)),
        Operation("blur", PHOTOMETRIC, 0.0, _fixed_one(partial(filtered, squares=BLUR))),
        Operation("smooth", PHOTOMETRIC, 0.0, _fixed_one(partial(filtered, squares=SMOOTH))),
    )
}


def applied(name: str, images: Tensor, bins: Tensor) -> Tensor:
    """One operation on a batch, uint8 in and out, each image by its own bin."""
    if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] not in (1, 3):
        came = f"{images.dtype} of shape {tuple(images.shape)}"
        raise ValueError(f"{came} cannot be transformed: wanted uint8 (N, 1 or 3, H, W)")
    if min(images.shape[-2:]) < SMALLEST:
        height, width = images.shape[-2:]
        raise ValueError(f"images of {height}x{width} are too small for COSE: wanted {SMALLEST} pixels a side or more")
    return OPERATIONS[name].apply(images, bins)
