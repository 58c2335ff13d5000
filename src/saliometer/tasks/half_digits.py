"""Half digits: half of the images lack one half of the digit, and the label says which do (Yona & Greenfeld, 2021).

Their text deletes the bottom half, their Figure 1 speaks of the top half; `bottom` is the task, `top` its mirror.
"""

from typing import Any

import torch
from torch import Tensor

from saliometer.registry import one_of, task
from saliometer.tasks._digits import drawn
from saliometer.types import PRIMARY, SECONDARY, Batch, Samples

VERSION = "half_digits-1"
SETTINGS = ("bottom", "top")
CHANCE = 1 / 2  # that a digit stays as it is
MIDDLE = 14  # the first row of the bottom half


@task(settings=SETTINGS, classes=2, quick={"count": 40})
def half_digits(
    setting: str, *, split: str = "test", count: int = 200, start: int = 0, seed: int = 0, source: str = "sklearn",
    jitter: int = 0, device: str = "cpu",
) -> Samples:  # fmt: skip
    """Whole (0) or half deleted (1); the half that may be deleted decides, whether something is there or not."""
    one_of("setting", setting, SETTINGS)
    indices = torch.arange(start, start + count, device=device)
    ink, digits, seeds = drawn(source, split, indices, seed, jitter)
    labels = indices // 10 % 2
    halves = torch.zeros(2, *ink.shape[1:], dtype=torch.bool, device=device)  # the top, the bottom
    halves[0, :MIDDLE], halves[1, MIDDLE:] = True, True
    deletable = SETTINGS[::-1].index(setting)
    images = ink * ~(halves[deletable] & (labels == 1)[:, None, None])
    masks = halves.expand(count, -1, -1, -1)
    ids = tuple(f"{split}-{i}" for i in indices.tolist())
    buckets = tuple(str(number) for number in (1 + digits + 10 * labels).tolist())
    roles = _roles(deletable, count, device)
    return Samples(Batch(images[:, None], labels, seeds), ids, labels, masks, _boxes(masks), roles, buckets)


def _boxes(masks: Tensor) -> Tensor:
    count, _, height, width = masks.shape
    both = torch.tensor([[0, MIDDLE, 0, width], [MIDDLE, height, 0, width]], device=masks.device)
    return both.expand(count, -1, -1)


def _roles(deletable: int, count: int, device: str) -> Tensor:
    roles = torch.full((count, 2), SECONDARY, dtype=torch.int8, device=device)
    roles[:, deletable] = PRIMARY
    return roles


def erased(setting: str, role: int, **which: Any) -> Tensor:
    """The images with one half painted black, the one that decides or the other."""
    samples = half_digits(setting, **which)
    return samples.batch.images * ~samples.region(role, "ink")[:, None]
