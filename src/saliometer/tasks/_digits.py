"""What the tasks of digits share: which digit an image shows, its ink, and the boxes round masks."""

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.seeds import fork, forks, uniform
from saliometer.tasks._bank import digit_bank

INKED = 0.2  # pixels above it are the digit's (sanity.md 3.3)


def drawn(source: str, split: str, indices: Tensor, seed: int, jitter: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """(N, 28, 28) the plain digits of a stream, (N,) which they are, (N,) the seed of all else in each image.

    Image i shows digit i % 10; its picture, place and all follow from (source, seed, split, i), never from a labelling.
    With `jitter` each digit is moved by up to so many pixels, which makes more of few pictures to train on.
    """
    bank = digit_bank(source, split, str(indices.device))
    seeds = forks(fork("digits", seed, split), indices)
    digits = indices % 10
    ink = bank.picked(digits, indices // 10, seeds, fork(seed, split))[:, 0]
    return moved(ink, seeds, jitter) if jitter else ink, digits, seeds


def moved(ink: Tensor, seeds: Tensor, most: int) -> Tensor:
    """Each of (N, H, W) by its own whole number of pixels along both sides, up to `most`; what is uncovered is 0."""
    by = (uniform(seeds, "jitter", 2) * (2 * most + 1)).long()  # 0 to 2 most: where to start in the padded image
    rows, columns = (torch.arange(side, device=ink.device) + by[:, dim, None] for dim, side in enumerate(ink.shape[1:]))
    images = torch.arange(len(ink), device=ink.device)[:, None, None]
    return F.pad(ink, [most] * 4)[images, rows[:, :, None], columns[:, None, :]]


def boxes(masks: Tensor) -> Tensor:
    """(N, K, 4) int64: the smallest box round each of (N, K, H, W) masks; 0 where one is empty."""
    found = []
    for dim in (-1, -2):
        lines = masks.any(dim)  # rows, then columns
        first = lines.int().argmax(-1)
        last = lines.shape[-1] - lines.flip(-1).int().argmax(-1)
        found += [first, last]
    return torch.stack(found, -1) * masks.flatten(2).any(2)[..., None]
