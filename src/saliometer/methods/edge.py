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
    smooth, slope = (pixels.new_tensor(values) for values in SOBEL[kernel])
    across = torch.outer(smooth, slope)  # rows smoothed, columns differentiated
    padded = F.pad(pixels.flatten(0, 1)[:, None], [kernel // 2] * 4, mode="replicate")
    slopes = F.conv2d(padded, torch.stack((across, across.T))[:, None])
    dx, dy = slopes.view(*pixels.shape[:2], 2, *pixels.shape[2:]).unbind(2)
    if axis == "x":
        return dx
    return (dx.square() + dy.square()).sqrt().sum(1, keepdim=True)
