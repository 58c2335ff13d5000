"""The paper's toy map: A decides and has 247 pixels at 1, B plays no part and has 100, the rest is background."""

import torch
from torch import Tensor

from saliometer.maps import minmax
from saliometer.metrics.pafl import pafl
from saliometer.metrics.piou import piou
from saliometer.metrics.safl import safl
from saliometer.metrics.siou import siou
from saliometer.types import PRIMARY, SECONDARY, Batch, Samples

SIDE = 64
A, B = (10, 29, 8, 21), (40, 50, 42, 52)  # rows and columns, half open: a letter's box and Box1
METRICS = {"pafl": pafl, "safl": safl, "piou": piou, "siou": siou}


def toy_map(b: float, background: float) -> Tensor:
    """(1, SIDE, SIDE)."""
    found = torch.full((1, SIDE, SIDE), background, dtype=torch.float64)
    for (top, bottom, left, right), value in ((A, 1.0), (B, b)):
        found[:, top:bottom, left:right] = value
    return found


def toy_scores(b: float, background: float) -> dict[str, float]:
    """Of the map scaled from 0 to 1, not blurred."""
    maps, samples = minmax(toy_map(b, background)), _samples()
    return {name: float(metric(maps, samples)) for name, metric in METRICS.items()}


def _samples() -> Samples:
    empty, one = torch.zeros(1, 1, SIDE, SIDE), torch.zeros(1, dtype=torch.int64)
    return Samples(
        Batch(empty, one, one), ("toy",), one, torch.zeros(1, 2, SIDE, SIDE, dtype=torch.bool),
        torch.tensor([[A, B]]), torch.tensor([[PRIMARY, SECONDARY]], dtype=torch.int8), ("",),
    )  # fmt: skip
