"""What the tasks of digits share: which digit an image shows, its ink, and the boxes round masks."""

import torch
from torch import Tensor

from saliometer.seeds import fork, forks
from saliometer.tasks._bank import digit_bank

INKED = 0.2  # pixels above it are the digit's (sanity.md 3.3)


def drawn(source: str, split: str, indices: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """(N, 28, 28) the plain digits of a stream, (N,) which they are, (N,) the seed of all else in each image.

    Image i shows digit i % 10; its picture, place and all follow from (source, seed, split, i), never from a labelling.
    """
    bank = digit_bank(source, split, str(indices.device))
    seeds = forks(fork("digits", seed, split), indices)
    digits = indices % 10
    return bank.picked(digits, indices // 10, seeds, fork(seed, split))[:, 0], digits, seeds


def boxes(masks: Tensor) -> Tensor:
    """(N, K, 4) int64: the smallest box round each of (N, K, H, W) masks; 0 where one is empty."""
    found = []
    for dim in (-1, -2):
        lines = masks.any(dim)  # rows, then columns
        first = lines.int().argmax(-1)
        last = lines.shape[-1] - lines.flip(-1).int().argmax(-1)
        found += [first, last]
    return torch.stack(found, -1) * masks.flatten(2).any(2)[..., None]
