"""Extent: how much of the image a map marks strongly, and how much of it in one piece."""

import numpy as np
import torch
from torch import Tensor

from saliometer.registry import metric
from saliometer.types import Samples, Scored, Subject


@metric(
    better="lower",
    formula="(number of pixels with m ≥ 0.5) ⁄ (number of pixels)",
    reads="scaled",
    passes=0,
    descriptive=True,
    parts={"largest": "lower"},
    degenerate=("invalid, for it cannot be scaled", "invalid, for it cannot be scaled", "1 / pixels"),
)
def extent(maps: Tensor, samples: Samples, subject: Subject) -> Scored:
    """The share of pixels at half of the map's maximum or above; `largest` is that of their largest connected piece."""
    strong = maps >= 0.5
    return Scored(strong.double().mean((1, 2)), {"largest": _largest(strong) / strong[0].numel()})


def _largest(strong: Tensor) -> Tensor:
    """(N,) float64: the pixels of the largest piece; neighbours touch at sides or corners."""
    from scipy.ndimage import label

    counts = []
    for one in strong.cpu().numpy():
        pieces, found = label(one, structure=np.ones((3, 3)))
        counts.append(float(np.bincount(pieces.ravel())[1:].max()) if found else 0.0)
    return torch.tensor(counts, dtype=torch.float64, device=strong.device)
