"""Centre: a Gaussian in the middle of the image, for photographers put what matters there."""

import torch
from torch import Tensor

from saliometer.registry import method
from saliometer.types import Batch, Model


@method(control=True, rendering="raw")
def centre(model: Model, batch: Batch, *, width: float = 40 / 224) -> Tensor:
    """A Gaussian in the middle of the image; `width` is its standard deviation as a share of the shorter side."""
    if width <= 0:
        raise ValueError(f"centre: width={width}, wanted more than 0")
    images = batch.images
    sides = (torch.arange(size, dtype=images.dtype, device=images.device) for size in images.shape[2:])
    rows, columns = ((side - (len(side) - 1) / 2).square() for side in sides)
    spread = width * min(images.shape[2:])
    bump = (-(rows[:, None] + columns) / (2 * spread**2)).exp()
    return bump.repeat(len(batch), 1, 1, 1)
