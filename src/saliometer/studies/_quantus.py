"""Two of Quantus' metrics beside ours on a model whose answers are known; Quantus is not needed by anything else."""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure, Shelf, measured
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure
from saliometer.engine.source import of_tensors
from saliometer.studies._claims import MissingError
from saliometer.types import Model

CPU = torch.device("cpu")


class Linear(nn.Module):
    """Class 0 scores the weighted sum of pixels, class 1 nothing."""

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.weights = nn.Parameter(weights)

    def forward(self, images: Tensor) -> Tensor:
        score = (images * self.weights).sum((1, 2, 3))
        return torch.stack((score, torch.zeros_like(score)), 1)


class Gate(nn.Module):
    """Class 0 gains by the right half only where the left half is bright, and loses by it elsewhere."""

    def forward(self, images: Tensor) -> Tensor:
        left, right = (half.mean((1, 2, 3)) for half in images.chunk(2, 3))
        score = 4 * (left + right * (2 * left - 1))
        return torch.stack((score, torch.zeros_like(score)), 1)


def monotonicity() -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Whether maps that put the right half last, and first, are called monotone: by Quantus, and by us."""
    quantus = _quantus()
    model, images = Model("gate", Gate().eval(), "", ""), torch.ones(2, 1, 8, 8)
    maps = torch.linspace(-1, 1, 8).expand(2, 1, 8, 8) + 0.01 * torch.linspace(-1, 1, 8)[:, None]
    metric = quantus.Monotonicity(abs=False, normalise=False, disable_warnings=True, features_in_step=4)
    theirs, ours = [], []
    for some in (maps, -maps):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = metric(
                model=model.net, x_batch=images.numpy(), y_batch=np.zeros(len(images), int), a_batch=some.numpy()
            )
        theirs.append(bool(all(found)))
        ours.append(_ours("monotonicity(definition=arya,sets=16)", model, images, some, "signed_max_minmax") == 1.0)
    return (theirs[0], theirs[1]), (ours[0], ours[1])


def completeness() -> tuple[bool, float]:
    """Quantus' verdict on exact attributions of a linear model, and our relative error."""
    quantus, (model, images, maps) = _quantus(), _case()
    metric = quantus.Completeness(disable_warnings=True, perturb_baseline=0.0, normalise=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = metric(
            model=model.net, x_batch=images.numpy(), y_batch=np.zeros(len(images), int), a_batch=maps.numpy()
        )
    return bool(all(found)), _ours("completeness(baseline=zero)", model, images, maps, "abs_max_minmax")


def _quantus() -> Any:
    try:
        import quantus
    except ImportError as error:
        raise MissingError("Quantus is not installed: `pip install quantus` to check it here") from error
    return quantus


def _case() -> tuple[Model, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = 0.2 + 0.6 * torch.rand(2, 1, 8, 8, generator=generator)
    weights = 0.1 + torch.rand(1, 8, 8, generator=generator)
    net = Linear(weights).eval().requires_grad_(False)
    return Model("linear", net, "", ""), images, images * weights


def _ours(text: str, model: Model, images: Tensor, maps: Tensor, normalisation: str) -> float:
    source = of_tensors(images, torch.zeros(len(images), dtype=torch.int64))
    shelf = Shelf(Answers(model, CPU))
    measure = Measure.parse(text, normalisation)
    samples = source.samples(0, len(images), 0, CPU)
    ((_, found, _),) = measured([measure], one_method("input_x_gradient"), maps, samples, shelf)
    if isinstance(found, Failure):
        raise found.error
    return float(found[0].values.mean())
