"""What tests of COSE share."""

import numpy as np
import torch
from torch import Tensor


def pictures(count: int, channels: int, height: int, width: int, seed: int = 0) -> Tensor:
    """Smooth colours with noise, of a range that differs from image to image and channel to channel."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    found = np.empty((count, channels, height, width))
    for place in np.ndindex(count, channels):
        wave = np.sin(x * rng.uniform(0.02, 0.3) + rng.uniform(0, 6)) * np.cos(y * rng.uniform(0.02, 0.3))
        noisy = rng.uniform(60, 180) + rng.uniform(10, 60) * wave + rng.normal(0, rng.uniform(1, 20), wave.shape)
        found[place] = noisy.clip(0, 255)
    return torch.from_numpy(found.astype(np.uint8))
