"""Where a method's values count from, and in which unit: what completeness and infidelity have to know of it."""

from collections.abc import Generator
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.perturb import FILLS, blurred, filled
from saliometer.registry import Value, methods, one_of
from saliometer.types import Logits, Question, Samples, Scores, Subject, unaltered

OWN = "own"
SIDE = 224  # the image size that blur_ig's sigma is meant for


@dataclass(frozen=True, eq=False)
class Baseline:
    """Images without evidence; for a method that compares with many references, their mean."""

    name: str  # as keys say it
    images: Tensor  # (N, C, H, W)
    references: Tensor | None = None  # (R, C, H, W), whose mean score is the baseline's

    def scores(self, targets: Tensor) -> Generator[Question, Tensor, Tensor]:
        """(N,) float64: the target's logit there."""
        if self.references is None:
            found = yield Scores(unaltered(self.images), key=f"image baseline {self.name}")
            return found[0].double()
        logits = yield Logits(unaltered(self.references), key=f"image baseline {self.name}")
        return logits[0].double()[:, targets].mean(0)


def baseline_of(samples: Samples, subject: Subject, baseline: str = OWN, otherwise: str = "zero") -> Baseline:
    """The named fill; `own` is the method's own baseline, or `otherwise` for a method without one.

    Contributions that name no baseline count from zero in the model's input space.
    """
    one_of("baseline", baseline, (OWN, *FILLS))
    batch, given = samples.batch, parameters(subject)
    if baseline == OWN and subject.method.name == "blur_ig":
        share = 1.0 if given["scheme"] == "pair" else min(batch.images.shape[2:]) / SIDE
        sigma = float(given["sigma"]) * share
        return Baseline(f"blurred {sigma}", blurred(batch.images, sigma, border="zero"))
    if baseline == OWN and "baseline" not in given and compares(subject):
        if batch.references is None:
            raise ValueError(f"method '{subject.method}' compares with reference images, but none came with the batch")
        references = batch.references[: int(given.get("count", len(batch.references)))]
        mean = references.double().mean(0).to(batch.images).expand_as(batch.images)
        return Baseline(f"references {len(references)}", mean, references)
    if baseline == OWN:
        baseline = str(given.get("baseline", "zero" if subject.unit == "contribution" else otherwise))
    images = filled(subject.model, batch.images, baseline, references=batch.references, seeds=batch.seeds)
    return Baseline(baseline, images)


def parameters(subject: Subject) -> dict[str, Value]:
    """All that decides a method's maps: its defaults, and what was asked for."""
    name, given = subject.method.name, dict(subject.method.params)
    return methods[name].parameters | given if name in methods else given


def compares(subject: Subject) -> bool:
    """Whether contributions count from many references."""
    name = subject.method.name
    return subject.unit == "contribution" and name in methods and methods[name].facts.needs_references


def unit_of(subject: Subject) -> str:
    """As the method declares it; squares of gradients have none."""
    return "map" if parameters(subject).get("squared") else subject.unit


def spread(maps: Tensor, images: Tensor) -> Tensor:
    """(N, C, H, W): maps of one channel shared out evenly among those of the images."""
    channels = images.shape[1]
    return maps if maps.shape[1] == channels else (maps / channels).expand_as(images)


def per_value(maps: Tensor, way: Tensor) -> Tensor:
    """Contributions of a way (N, C, H, W) as slopes: 0 where there is no way."""
    still = way.abs() < 1e-6
    return torch.where(still, 0.0, maps / way.masked_fill(still, 1.0))
