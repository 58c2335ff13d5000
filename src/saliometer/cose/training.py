"""Training images under COSE's operations: one of the 13 or none, a bin and a sign, drawn for each image and epoch.

What an image is given depends on the seed, the epoch and its own number alone, whatever the batches are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.cose.operations import BINS, OPERATIONS, applied, moved
from saliometer.seeds import fork, forks, uniform

NAMES = ("identity", *OPERATIONS)
TOGETHER = 4  # batches that are changed at once: an operation then finds more images to work on
SHIFT = 1 / 8  # of a side, that a jittered image is moved at most


@dataclass(frozen=True, eq=False)
class Block:
    """A few batches' images: as they come, by operation, and where in the first order each of the second stands."""

    order: Tensor  # (N,) int64, like all here where the images are
    by_operation: Tensor  # (N,) int64
    bins: Tensor  # (N,) int64, of `by_operation`
    back: Tensor  # (N,) int64
    groups: tuple[tuple[str, int, int], ...]  # operation, from, to; known without asking the device


def drawn(seed: int, epoch: int, numbers: Tensor) -> tuple[Tensor, Tensor]:
    """(N,) int64 each: the place of an operation among NAMES and a signed bin, for the images of these numbers."""
    draws = uniform(forks(fork(seed, "operations", epoch), numbers), "operation, bin, sign", 3)
    operations, bins = (draws[:, 0] * len(NAMES)).long(), (draws[:, 1] * (BINS + 1)).long()
    return operations, torch.where(draws[:, 2] < 0.5, bins, -bins)


def steps_of(count: int, batch: int) -> int:
    """Batches of an epoch: a last one of a single image is left out, for batch norm has nothing to learn from it."""
    return max(1, count // batch + (count % batch > 1))


def blocks(seed: int, epoch: int, count: int, batch: int, device: torch.device) -> Iterator[Block]:
    """One epoch of `count` images in an order of its own, a few batches at a time; one copy to the device for all."""
    order = torch.randperm(count, generator=torch.Generator().manual_seed(fork(seed, "order", epoch)))
    order = order[: steps_of(count, batch) * batch]
    count = len(order)
    operations, bins = drawn(seed, epoch, order)
    size = TOGETHER * batch
    number = torch.arange(count) // size  # of the block
    by_operation = (number * len(NAMES) + operations).argsort(stable=True)
    back = torch.empty_like(by_operation).scatter_(0, by_operation, torch.arange(count)) - number * size
    counts = (number * len(NAMES) + operations).bincount(minlength=len(NAMES) * -(-count // size))
    columns = torch.stack((order, order[by_operation], bins[by_operation], back)).to(device)
    for part, found in zip(columns.split(size, 1), counts.view(-1, len(NAMES)).tolist(), strict=True):
        ordered, sorted_, signed, places = part.unbind()
        yield Block(ordered, sorted_, signed, places, _groups(found))


def _groups(counts: list[int]) -> tuple[tuple[str, int, int], ...]:
    groups, start = [], 0
    for name, count in zip(NAMES, counts, strict=True):
        if count and name != "identity":
            groups.append((name, start, start + count))
        start += count
    return tuple(groups)


def transformed(levels: Tensor, block: Block) -> Tensor:
    """(N, C, H, W) uint8 of the order `by_operation`, changed in place; what comes back is in the first order."""
    for name, start, end in block.groups:
        levels[start:end] = applied(name, levels[start:end], block.bins[start:end])
    return levels[block.back]


def jittered(levels: Tensor, seed: int, epoch: int, numbers: Tensor) -> Tensor:
    """Moved by up to an eighth of a side along both axes, black where uncovered, and half of them mirrored."""
    draws = uniform(forks(fork(seed, "jitter", epoch), numbers), "right, down, mirrored", 3)
    for dim, draw in ((-1, draws[:, 0]), (-2, draws[:, 1])):
        most = int(SHIFT * levels.shape[dim])
        levels = moved(levels, (draw * (2 * most + 1)).long() - most, dim)
    return torch.where((draws[:, 2] < 0.5).view(-1, 1, 1, 1), levels.flip(-1), levels)
