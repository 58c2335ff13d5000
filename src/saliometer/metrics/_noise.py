"""Changes of an image that infidelity asks about: noise, squares that are taken out, noise in the image's place."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.metrics._baselines import Baseline
from saliometer.metrics._draws import drawn
from saliometer.seeds import normal, uniform
from saliometer.types import Model, Samples

DEVIATION = 0.2  # of noise, in pixel values
GRID, LARGEST = 28, 10  # squares have 1 to 10 cells of a grid that is so high


@dataclass(frozen=True, eq=False)
class Noise:
    """Changes of a batch: `made` gives changed images and by how much they changed, each (len(ks), N, C, H, W)."""

    name: str
    made: Callable[[range], tuple[Tensor, Tensor]]
    whole: bool = False  # values are taken away as a whole: where that is so stands for how much


def gaussian(samples: Samples, model: Model, start: Baseline, clip: bool) -> Noise:
    images = samples.batch.images
    low, high = model.bounds(images)
    scale = DEVIATION / model.channels(images, model.std)

    def made(ks: range) -> tuple[Tensor, Tensor]:
        shown = images - scale * _normal(samples, ks)
        shown = shown.clamp(low, high) if clip else shown
        return shown, images - shown

    return Noise(f"gaussian {clip}", made)


def noisy_baseline(samples: Samples, model: Model, start: Baseline, clip: bool) -> Noise:
    """What Yeh et al.'s code calls Gaussian: noise in place of the image, cut to pixel values."""
    images = samples.batch.images
    mean, std = (model.channels(images, values) for values in (model.mean, model.std))

    def made(ks: range) -> tuple[Tensor, Tensor]:
        shown = ((DEVIATION * _normal(samples, ks)).clamp(0, 1) - mean) / std
        return shown, images - shown

    return Noise("noisy_baseline", made)


def square(samples: Samples, model: Model, start: Baseline, clip: bool) -> Noise:
    """One square of an image is set to the baseline."""
    images = samples.batch.images

    def made(ks: range) -> tuple[Tensor, Tensor]:
        inside = squares(samples, ks)
        return torch.where(inside, start.images, images), inside

    return Noise(f"square {start.name}", made, whole=True)


def squares(samples: Samples, ks: range) -> Tensor:
    """(len(ks), N, 1, H, W) bool: a square of each image, somewhere inside it."""
    height, width = samples.batch.images.shape[2:]
    seeds = drawn(samples.batch.seeds, "infidelity", ks)
    size, row, column = uniform(seeds, "square", 3).double().T
    side = ((size * LARGEST).floor().add_(1) * height / GRID).round().clamp(1, min(height, width))
    rows, columns = (
        _between((share * (length - side + 1)).floor(), side, length)
        for share, length in ((row, height), (column, width))
    )
    return (rows[:, :, None] & columns[:, None, :]).view(len(ks), -1, 1, height, width)


def _between(first: Tensor, side: Tensor, length: int) -> Tensor:
    """(M, length) bool: which places a stretch covers."""
    place = torch.arange(length, device=first.device)
    return (place >= first[:, None]) & (place < (first + side)[:, None])


def _normal(samples: Samples, ks: range) -> Tensor:
    images = samples.batch.images
    like = images.new_empty((len(ks) * len(images), *images.shape[1:]))
    return normal(drawn(samples.batch.seeds, "infidelity", ks), "noise", like).view(len(ks), *images.shape)


NOISES: dict[str, Callable[[Samples, Model, Baseline, bool], Noise]] = {
    "gaussian": gaussian,
    "square": square,
    "noisy_baseline": noisy_baseline,
}
