"""Pairs: two pictures of two groups of five classes side by side, labelled by either (Yona & Greenfeld, 2021).

Without photographs of one's own the tiles are digits, 0 to 4 and 5 to 9.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import one_of, task
from saliometer.seeds import fork, forks, uniform
from saliometer.tasks._bank import bank
from saliometer.types import PRIMARY, SECONDARY, Batch, Samples

VERSION = "pairs-1"
SETTINGS = ("first", "second")
GROUP = 5


@task(settings=SETTINGS, classes=GROUP, quick={"count": 50})
def pairs(
    setting: str, *, split: str = "test", count: int = 200, start: int = 0, seed: int = 0, source: str = "sklearn",
    side: int = 0, device: str = "cpu",
) -> Samples:  # fmt: skip
    """Two tiles side by side, of the first and the second five classes; `first` or `second` gives the label.

    `side` enlarges each tile, 0 leaves it as it is.
    """
    one_of("setting", setting, SETTINGS)
    indices = torch.arange(start, start + count, device=device)
    held = bank(source, split, str(indices.device))
    seeds = forks(fork("pairs", seed, split), indices)
    groups = torch.stack((indices % GROUP, indices // GROUP % GROUP + GROUP))  # (2, N) classes
    swapped = indices // GROUP**2 % 2 == 1  # the first group's tile is on the right
    many = held.labels.bincount(minlength=2 * GROUP)[groups]
    numbers = (uniform(seeds, "pictures", 2).T * many).long()
    tiles = [held.picked(one, number, seeds, fork(seed, split)) for one, number in zip(groups, numbers, strict=True)]
    turned = swapped[:, None, None, None]
    left, right = tiles[0].where(~turned, tiles[1]), tiles[1].where(~turned, tiles[0])
    images = enlarged(torch.cat((left, right), 3), side)
    height, width = images.shape[2], images.shape[3] // 2
    column = torch.arange(2 * width, device=device).expand(height, -1)
    masks = torch.stack(((column < width) != turned[:, 0], (column >= width) != turned[:, 0]), 1)
    ids = tuple(f"{split}-{i}" for i in indices.tolist())
    buckets = tuple(str(1 + i % (2 * GROUP**2)) for i in indices.tolist())
    batch = Batch(images, groups[0], seeds)
    starts = width * torch.stack((swapped, ~swapped), 1).long()  # (N, 2)
    zero = torch.zeros_like(starts)
    boxes = torch.stack((zero, zero + height, starts, starts + width), 2)
    roles = torch.zeros(count, 2, dtype=torch.int8, device=device)
    return seen_as(Samples(batch, ids, groups[0], masks, boxes, roles, buckets), setting)


def enlarged(images: Tensor, side: int) -> Tensor:
    """Each tile by itself, so that none bleeds over the edge; 0 leaves them as they are."""
    if not side:
        return images
    tiles = images.tensor_split(2, 3)
    return torch.cat([F.interpolate(tile, (side, side), mode="bilinear", align_corners=False) for tile in tiles], 3)


def erased(setting: str, role: int, *, source: str = "sklearn", device: str = "cpu", **which: Any) -> Tensor:
    """The images with one tile in the mean colour of all training pictures."""
    samples = pairs(setting, source=source, device=device, **which)
    colour = bank(source, "train", device).pixels.double().mean((0, 2, 3)).float() / 255
    return torch.where(samples.region(role, "ink")[:, None], colour.view(1, -1, 1, 1), samples.batch.images)


def seen_as(samples: Samples, setting: str) -> Samples:
    """The same images as the other group labels them."""
    numbers = torch.tensor([int(bucket) - 1 for bucket in samples.buckets], device=samples.labels.device)
    first = one_of("setting", setting, SETTINGS) == "first"
    labels = numbers % GROUP if first else numbers // GROUP % GROUP
    roles = torch.tensor([[PRIMARY, SECONDARY] if first else [SECONDARY, PRIMARY]], dtype=torch.int8)
    roles = roles.to(labels.device).repeat(len(samples), 1)
    return replace(samples, batch=replace(samples.batch, targets=labels), labels=labels, roles=roles)
