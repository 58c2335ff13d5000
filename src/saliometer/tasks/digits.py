"""Digits: the natural task, to name the digit (Adebayo et al., 2018; task t of Yona & Greenfeld, 2021)."""

from typing import Any

import torch
from torch import Tensor

from saliometer.registry import one_of, task
from saliometer.tasks._digits import INKED, boxes, drawn
from saliometer.types import PRIMARY, Batch, Samples

VERSION = "digits-1"
SETTINGS = ("digit",)


@task(settings=SETTINGS, classes=10, quick={"count": 40})
def digits(
    setting: str, *, split: str = "test", count: int = 200, start: int = 0, seed: int = 0, source: str = "sklearn",
    jitter: int = 0, device: str = "cpu",
) -> Samples:  # fmt: skip
    """Name the digit; the digits of scikit-learn, or MNIST with source=mnist:ROOT."""
    one_of("setting", setting, SETTINGS)
    indices = torch.arange(start, start + count, device=device)
    ink, labels, seeds = drawn(source, split, indices, seed, jitter)
    masks = (ink > INKED)[:, None]
    roles = torch.full((count, 1), PRIMARY, dtype=torch.int8, device=device)
    ids = tuple(f"{split}-{i}" for i in indices.tolist())
    buckets = tuple(str(1 + label) for label in labels.tolist())
    return Samples(Batch(ink[:, None], labels, seeds), ids, labels, masks, boxes(masks), roles, buckets)


def erased(setting: str, role: int, **which: Any) -> Tensor:
    """The images without what decides: nothing is left."""
    images = digits(setting, **which).batch.images
    return torch.zeros_like(images) if role == PRIMARY else images
