"""Sparseness: the Gini index of a map, how unevenly it shares out what it gives (Chalasani et al., 2020)."""

import torch
from torch import Tensor

from saliometer.registry import metric
from saliometer.types import Samples, Scored, Subject

LEAST = 1e-7  # added to every value, as Quantus does: a map of zeros is even


@metric(
    better="higher",
    formula="Σ (2k − n − 1) mₖ ⁄ (n Σ mₖ), with m₁ ≤ … ≤ mₙ the sorted pixels of m + 10⁻⁷",
    reads="scaled",
    flat=True,
    passes=0,
    degenerate=("0", "0", "about 1 - 1/n"),
)
def sparseness(maps: Tensor, samples: Samples, subject: Subject) -> Scored:
    """The Gini index: 0 for a map that is the same everywhere, about 1 - 1/n for one of n pixels that stands alone.

    What is added to every pixel takes a share of 10⁻⁷ n from the latter: at 224 pixels it is 0.995.
    """
    values = maps.flatten(1).sort(1).values.double() + LEAST
    count = values.shape[1]
    places = torch.arange(1, count + 1, dtype=torch.float64, device=values.device)
    return Scored((values * (2 * places - count - 1)).sum(1) / (count * values.sum(1)))
