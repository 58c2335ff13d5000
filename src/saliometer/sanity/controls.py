"""Maps whose verdict is known beforehand (sanity.md 3.5): those that know no weights, and one that knows the answer."""

import torch
from torch import Tensor

from saliometer.seeds import fork, forks, uniform

NEGATIVE = ("edge", "input", "fake_cam", "centre", "fresh_noise")  # the first four are methods
POSITIVE = ("oracle",)
NOISE = 0.1  # of the oracle's mass


def fresh_noise(seeds: Tensor, model: str, size: tuple[int, int]) -> Tensor:
    """(n, 1, H, W) uniform noise, drawn anew for every image and model: maps of two models have nothing in common."""
    return uniform(forks(fork("fresh noise", model), seeds), "noise", 1, *size)


def oracle(deciding: Tensor | None, seeds: Tensor, model: str, size: tuple[int, int]) -> Tensor:
    """(n, 1, H, W): what decides the task the model was trained on, with a tenth of the mass in noise.

    A model that was trained on none, and an image where nothing decides, get noise alone.
    """
    noise = fresh_noise(seeds, model, size)
    noise = noise / noise.sum((2, 3), keepdim=True)
    if deciding is None:
        return noise
    truth = deciding[:, None].to(noise)
    area = truth.sum((2, 3), keepdim=True)
    return torch.where(area > 0, (1 - NOISE) * truth / area.clamp(min=1) + NOISE * noise, noise)
