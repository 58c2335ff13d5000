"""Segments: images cut into pieces of like colour, for methods that weigh pieces instead of pixels."""

import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Image = NDArray[Any]  # (H, W, C)
Labels = NDArray[np.int32]
Made = TypeVar("Made")

SCALES = (50, 100, 150, 250, 500, 1200)  # those of xrai
KEPT, BYTES = 4096, 2**29  # segmentations that are remembered, and their size: several methods cut the same images
_lock, _known = Lock(), OrderedDict[bytes, Any]()


def quickshift(
    pixels: Tensor, *, kernel_size: float = 4.0, max_dist: float = 200.0, ratio: float = 0.2, seed: int = 42
) -> Tensor:
    """(N, H, W) int64, counted from 0: pieces of pixels in [0, 1] (Vedaldi and Soatto, 2008), with lime's parameters.

    Colours are compared in Lab.
    """
    from skimage import segmentation

    def cut(image: Image) -> Labels:
        if (image == image[:1, :1]).all():  # else the noise that breaks ties would make pieces of nothing
            return np.zeros(image.shape[:2], dtype=np.int32)
        labels = segmentation.quickshift(image, ratio, kernel_size, max_dist, rng=seed)  # type: ignore[no-untyped-call]
        return _counted(labels)

    return _each(cut, _coloured(pixels).expand(-1, 3, -1, -1), "quickshift", kernel_size, max_dist, ratio, seed)


def felzenszwalb(
    pixels: Tensor,
    *,
    scales: tuple[int, ...] = SCALES,
    sigma: float = 0.8,
    min_size: int = 150,
    side: int = 224,
) -> Tensor:
    """(N, scales, H, W) int64, counted from 0 in each scale: pieces by colour (Felzenszwalb and Huttenlocher, 2004).

    They are cut at `side` x `side`, where scales and sizes are meant, from values stretched to [-1, 1].
    """
    from skimage import segmentation, transform

    def cut(image: Image) -> Labels:
        low, high = image.min(), image.max()
        stretched = (image - low) / (high - low if high > low else 1) * 2 - 1
        resized = transform.resize(stretched, (side, side), order=3, anti_aliasing=True)  # type: ignore[no-untyped-call]
        rows, columns = ((np.arange(size) + 0.5) * side // size for size in image.shape[:2])
        nearest = np.ix_(rows.astype(int), columns.astype(int))
        cuts = (segmentation.felzenszwalb(resized, scale=s, sigma=sigma, min_size=min_size) for s in scales)
        return np.stack([_counted(labels[nearest]) for labels in cuts])

    return _each(cut, _coloured(pixels), "felzenszwalb", scales, sigma, min_size, side)


def grid(images: Tensor, cells: int) -> Tensor:
    """(N, H, W) int64, counted from 0: `cells` x `cells` rectangles, fewer where the image has fewer pixels."""
    if cells < 1:
        raise ValueError(f"grid: cells={cells}, wanted 1 or more")
    count, _, *sides = images.shape
    rows, columns = (torch.arange(side, device=images.device) * min(cells, side) // side for side in sides)
    return (rows[:, None] * min(cells, sides[1]) + columns).expand(count, -1, -1)


def members(labels: Tensor, count: int = 0) -> Tensor:
    """(..., count, H, W) bool: the pixels of each piece; count 0 takes as many as there are."""
    count = count or int(labels.max()) + 1
    return labels.unsqueeze(-3) == torch.arange(count, device=labels.device).view(-1, 1, 1)


def grown(labels: NDArray[Any], radius: int) -> NDArray[np.bool_]:
    """(regions, pixels): every segment of (scales, H, W) labels, grown by a disk."""
    scales, height, width = labels.shape
    counts = labels.max((1, 2)) + 1
    numbers = labels + (np.cumsum(counts) - counts)[:, None, None]
    padded = np.pad(numbers, ((0, 0), (radius, radius), (radius, radius)), mode="edge")
    regions = np.zeros((counts.sum(), height * width), dtype=bool)
    regions[numbers.reshape(scales, -1), np.arange(height * width)] = True
    reach = range(-radius, radius + 1)
    for down, right in ((y, x) for y in reach for x in reach if y * y + x * x <= radius * radius):
        top, left = radius + down, radius + right
        seen = padded[:, top : top + height, left : left + width]
        scale, row, column = np.nonzero(seen != numbers)  # few: most neighbours are of the same segment
        regions[seen[scale, row, column], row * width + column] = True
    return regions


@dataclass(frozen=True, eq=False)
class Regions:
    """Sets of pixels that may overlap, so that the parts of a set and the sets of a part are found at once.

    Pixels that lie in the same sets are one piece: there are several times fewer of those.
    """

    piece: NDArray[np.int32]  # (pixels,): that each belongs to
    sizes: NDArray[np.int64]  # (pieces,): the pixels of each
    pieces: NDArray[np.int32]  # of the first region, then of the second, ...
    starts: NDArray[np.int64]  # where each region's begin, and the end
    over: NDArray[np.int32]  # (pieces, most): the regions over each piece; beyond them the count of regions

    @classmethod
    def of(cls, regions: NDArray[np.bool_]) -> "Regions":
        """Of (regions, pixels)."""
        bits = np.ascontiguousarray(np.packbits(regions, axis=0).T)
        words = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()  # one for each pixel: the regions it lies in
        _, first, piece, sizes = np.unique(words, return_index=True, return_inverse=True, return_counts=True)
        region, pieces = (found.astype(np.int32) for found in np.nonzero(regions[:, first]))
        counts, many = np.bincount(region, minlength=len(regions)), np.bincount(pieces, minlength=len(first))
        over = np.full((len(first), max(1, many.max(initial=0))), len(regions), dtype=np.int32)
        order = np.argsort(pieces, kind="stable")
        over[pieces[order], np.arange(len(pieces)) - np.repeat(np.cumsum(many) - many, many)] = region[order]
        return cls(piece.astype(np.int32), sizes, pieces, np.concatenate(([0], np.cumsum(counts))), over)

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in (self.piece, self.sizes, self.pieces, self.starts, self.over))


def grown_regions(labels: Tensor, radius: int) -> list[Regions]:
    """For every image of (N, scales, H, W) labels, its segments grown by a disk."""
    every = labels.cpu().numpy().astype(np.int32)
    return _remembered(lambda one: Regions.of(grown(one, radius)), every, "grown", radius)


def _coloured(pixels: Tensor) -> Tensor:
    """(N, 3 or 1, H, W): colours, or the mean over channels where there are not three."""
    return pixels if pixels.shape[1] == 3 else pixels.mean(1, keepdim=True)


def _counted(labels: NDArray[Any]) -> Labels:
    """The same pieces, numbered from 0 without gaps."""
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int32)


def _each(cut: Callable[[Image], Labels], pixels: Tensor, *how: object) -> Tensor:
    """`cut` for every image, on all cores (scikit-image lets go of the interpreter), or as it is remembered."""
    images = pixels.detach().permute(0, 2, 3, 1).cpu().contiguous().numpy()
    found = _remembered(cut, images, *how)
    return torch.from_numpy(np.stack(found)).to(pixels.device, torch.int64)


def _remembered(make: Callable[[NDArray[Any]], Made], images: NDArray[Any], *how: object) -> list[Made]:
    """What is made of every image, on all cores, or as it is remembered."""

    def known(image: NDArray[Any]) -> Made:
        key = blake2b(repr((how, image.shape, image.dtype)).encode() + image.tobytes(), digest_size=20).digest()
        with _lock:
            if key in _known:
                _known.move_to_end(key)
                return _known[key]  # type: ignore[no-any-return]
        made = make(image)
        with _lock:
            _known[key] = made
            while len(_known) > KEPT or (len(_known) > 1 and sum(one.nbytes for one in _known.values()) > BYTES):
                _known.popitem(last=False)
        return made

    with ThreadPoolExecutor(min(len(images), os.cpu_count() or 1)) as pool:
        return list(pool.map(known, images))
