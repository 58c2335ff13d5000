"""What a layer's features are usually like: their mean, spread and activity over reference images."""

from collections.abc import Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.methods._cam import Grid
from saliometer.types import Activations, Question

FEWEST = 100  # references without which a mean and a spread say nothing
CHUNK = 100  # references at a time
LEAST = 0.01  # of a standard deviation, and the share of references in which a feature must be active


@dataclass(frozen=True, eq=False)
class Usual:
    """Of a layer's features (k, h, w) over the references."""

    mean: Tensor
    deviation: Tensor
    active: Tensor  # 1 where a feature is not nearly always 0, else 0
    rectified: bool  # none is ever negative, as behind a ReLU


def usual(name: str, references: Tensor, layer: str, grid: Grid) -> Generator[Question, Tensor, Usual]:
    """Read a few references at a time, for their features together need not fit into memory."""
    total = squares = nonzero = lowest = torch.zeros(())
    for part in references.split(CHUNK):
        output = grid.maps((yield Activations(part, layer)))
        features = output.double()
        total, squares = total.to(features) + features.sum(0), squares.to(features) + features.square().sum(0)
        nonzero, lowest = nonzero.to(features) + (features != 0).sum(0), lowest.to(features).minimum(features.amin())
    count = len(references)
    variance = (squares - total.square() / count) / (count - 1)
    active = nonzero > LEAST * count
    if not active.any():
        raise ValueError(f"{name}: layer '{layer}' is 0 on nearly all references; name another with {name}(layer=NAME)")
    mean, deviation = total / count, variance.clamp(min=0).sqrt().clamp(min=LEAST)
    mean, deviation, active = (values.to(output.dtype) for values in (mean, deviation, active))
    return Usual(mean, deviation, active, bool(lowest >= 0))
