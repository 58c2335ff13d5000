"""XRAI: regions of an image in the order of their mean integrated gradients (Kapishnikov et al., 2019)."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from saliometer.methods._path import OUTPUTS, missed, points, vanishes
from saliometer.methods._segments import Regions, felzenszwalb, grown_regions
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Explained, Gradients, Model

SIDE = 224  # the image size that these two are meant for; smaller images get less
FEWEST = 50  # new pixels that a region must bring
RADIUS = 5  # that segments grow by


@method(quick={"steps": 3}, passes=200, budget="steps")
def xrai(model: Model, batch: Batch, *, steps: int = 100, output: str = "logit") -> Asking:
    """Segments of many scales, each painted with the mean attribution of what it adds to better ones.

    The attribution is that of integrated gradients from a black and a white image of the image's own values.
    """
    one_of("output", output, OUTPUTS)
    places, weights = points("xrai", "pair", steps)
    images = batch.images
    starts = torch.stack((images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)))

    def between(ks: range) -> Tensor:
        start = starts[[k // steps for k in ks]]
        place = images.new_tensor([places[k % steps] for k in ks]).view(-1, 1, 1, 1, 1)
        return start + place * (images - start)

    def taken(k: int, slope: Tensor) -> Tensor:
        return (images - starts[k // steps]) * slope.mul(weights[k % steps] / 2)

    values = yield Gradients(between, 2 * steps, taken, of=output)
    collapsed = values.amax(1, keepdim=True)
    labels = felzenszwalb(model.pixels(images))
    maps = _painted(collapsed, labels)
    same = vanishes(images - starts[0])
    flags = {
        "one_segment": (labels == 0).flatten(1).all(1),
        "equal_baseline": same,
        "zero_gradient": vanishes(values) & ~same,
    }
    promised = collapsed.sum((1, 2, 3), dtype=torch.float64)
    return Explained(maps, missed(maps, promised), promised, flags)


def _painted(values: Tensor, labels: Tensor) -> Tensor:
    """(N, 1, H, W): one image at a time, for each has regions of its own."""
    height, width = values.shape[2:]
    fewest = max(1, round(FEWEST * min(1.0, height * width / SIDE**2)))
    radius = round(RADIUS * min(1.0, height / SIDE))
    maps = [
        greedy(value.ravel(), regions, fewest)
        for value, regions in zip(values.double().cpu().numpy(), grown_regions(labels, radius), strict=True)
    ]
    return torch.from_numpy(np.stack(maps)).to(values).view_as(values)


def painted(values: NDArray[Any], regions: NDArray[np.bool_], fewest: int) -> NDArray[Any]:
    """(pixels,): (regions, pixels) painted by `greedy`."""
    return greedy(values, Regions.of(regions), fewest)


def greedy(values: NDArray[Any], regions: Regions, fewest: int) -> NDArray[Any]:
    """(pixels,): the region whose new pixels have the highest mean is painted with it, until none brings `fewest`.

    Sizes and sums of what regions would bring are kept up to date: every piece is taken off once.
    """
    held = np.stack((regions.sizes, np.bincount(regions.piece, values, len(regions.sizes))))  # (2, pieces)
    levels, free = np.empty_like(held[1]), np.ones(held.shape[1], dtype=bool)

    def paint(pieces: NDArray[Any]) -> None:
        count, total = held[:, pieces].sum(1)
        levels[pieces], free[pieces] = total / count, False

    counts, sums = _brought(np.arange(held.shape[1]), held, regions)
    while (counts >= fewest).any():
        best = np.where(counts >= fewest, sums / np.maximum(counts, 1), -np.inf).argmax()
        pieces = regions.pieces[regions.starts[best] : regions.starts[best + 1]]
        new = pieces[free[pieces]]
        paint(new)
        fewer, less = _brought(new, held, regions)
        counts, sums = counts - fewer, sums - less
    if free.any():
        paint(np.flatnonzero(free))
    return levels[regions.piece]  # type: ignore[no-any-return]


def _brought(pieces: NDArray[Any], held: NDArray[Any], regions: Regions) -> tuple[NDArray[Any], NDArray[Any]]:
    """How many pixels each region has in these pieces, and the sum of their values."""
    over, most = regions.over[pieces].ravel(), regions.over.shape[1]
    size = len(regions.starts)  # one more than regions: places where there is none
    count, total = (np.bincount(over, np.repeat(row[pieces], most), size)[:-1] for row in held)
    return count, total
