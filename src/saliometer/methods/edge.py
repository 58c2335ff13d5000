"""Edge: the Sobel edges of the image, which no model had a part in."""

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import method, one_of
from saliometer.types import Batch, Model

SOBEL = {3: ((1.0, 2.0, 1.0), (-1.0, 0.0, 1.0)), 5: ((1.0, 4.0, 6.0, 4.0, 1.0), (-1.0, -2.0, 0.0, 2.0, 1.0))}


@method(control=True, rendering="raw_heat_scaled")
def edge(model: Model, batch: Batch, *, axis: str = "both", kernel: int = 3) -> Tensor:
    """Sobel edges of the pixels; axis=x with kernel=5 gives the signed derivative that SMERF's authors use."""
    one_of("axis", axis, ("both", "x"))
    if kernel not in SOBEL:
        raise ValueError(f"edge: kernel={kernel}, wanted 3 or 5")
    pixels = model.pixels(batch.images)
    padded = F.pad(pixels, [kernel // 2] * 4, mode="replicate")
    dx = _across(padded, kernel)
    if axis == "x":
        return dx
    dy = _across(padded.mT, kernel).mT
    return (dx.square() + dy.square()).sqrt().sum(1, keepdim=True)


def _across(padded: Tensor, kernel: int) -> Tensor:
    """Columns differentiated, rows smoothed: by differences, so that it is exactly 0 where a picture is flat."""
    smooth, slope = SOBEL[kernel]
    height, width = (side - kernel + 1 for side in padded.shape[-2:])
    rise = torch.zeros_like(padded[..., :width])
    for right in range(kernel // 2 + 1, kernel):
        left = kernel - 1 - right
        rise += slope[right] * (padded[..., right : right + width] - padded[..., left : left + width])
    rows = [weight * rise[..., first : first + height, :] for first, weight in enumerate(smooth)]
    return torch.stack(rows).sum(0)
