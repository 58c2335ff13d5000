"""How sure a number is: models are few and images many, so both are resampled (sanity.md 3.4)."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from scipy.stats import t as student
from torch import Tensor

from saliometer.sanity.effect import energy
from saliometer.seeds import fork, forks, uniform
from saliometer.summary import Estimate

DRAWS = 10_000
TOGETHER = 1000  # draws at a time
MARGINS = {"E": 0.02, "DD": 0.05}  # of equivalence
Key = TypeVar("Key", bound=Hashable)


def bootstrap_energy(distances: Tensor, trained: int, *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """E with its 95 % interval: trained models, random models and images drawn with replacement, (n, M, M) distances.

    Pairs of two copies of one model count as little as a model with itself does; a draw that has no other is left out.
    """
    images, count = distances.shape[:2]
    first, second = torch.triu_indices(count, count, 1, device=distances.device)  # all pairs of different models
    apart = distances[:, first, second].double()
    known = ~apart.isnan()
    whole, apart = bool(known.all()), apart.nan_to_num(0)
    kinds = (first < trained).long() + (second < trained).long()  # 2 among trained, 1 between, 0 among random
    found = []
    for lots in _lots(draws, seed, distances):
        weights = torch.cat((_counts(lots, "trained", trained), _counts(lots, "random", count - trained)), 1)
        chosen = _counts(lots, "images", images)
        pairs = weights[:, first] * weights[:, second]  # (draws, pairs)
        share = chosen @ apart / (images if whole else (chosen @ known.double()))
        pairs = pairs.where(~share.isnan(), 0)
        means = [
            (pairs[:, kinds == kind] * share[:, kinds == kind].nan_to_num(0)).sum(1) / pairs[:, kinds == kind].sum(1)
            for kind in (1, 2, 0)
        ]
        found.append(means[0] - (means[1] + means[2]) / 2)
    return _interval(energy(distances, trained).energy, torch.cat(found))


def bootstrap_contrast(parts: Sequence[tuple[float, Tensor]], *, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """A weighted sum of means of values (R, n) with its 95 % interval: models of each set, then the same images."""
    images = {values.shape[1] for _, values in parts}
    if len(images) != 1:
        raise ValueError(f"values are of {sorted(images)} images: wanted the same images in every set")
    count, found = images.pop(), []
    for lots in _lots(draws, seed, parts[0][1]):
        chosen, total = _counts(lots, "images", count), torch.zeros(len(lots), dtype=torch.float64, device=lots.device)
        for place, (factor, values) in enumerate(parts):
            models = _counts(lots, f"models {place}", len(values))
            known = ~values.isnan()
            weight = ((models @ known.double()) * chosen).sum(1)
            total += factor * ((models @ values.double().nan_to_num(0)) * chosen).sum(1) / weight
        found.append(total)
    value = sum(factor * values.double().nanmean().item() for factor, values in parts)
    return _interval(value, torch.cat(found))


def _lots(draws: int, seed: int, like: Tensor) -> Iterator[Tensor]:
    yield from forks(fork("sanity bootstrap", seed), torch.arange(draws, device=like.device)).split(TOGETHER)


def _counts(lots: Tensor, what: str, count: int) -> Tensor:
    """(draws, count) float64: how often each is drawn when as many are drawn as there are."""
    chosen = (uniform(lots, what, count) * count).long()
    ones = torch.ones_like(chosen, dtype=torch.float64)
    return torch.zeros(len(lots), count, dtype=torch.float64, device=lots.device).scatter_add_(1, chosen, ones)


def _interval(value: float, found: Tensor) -> Estimate:
    known = found[~found.isnan()]
    if not len(known) or math.isnan(value):
        return Estimate(value, math.nan, math.nan)
    edges = torch.tensor([0.025, 0.975], dtype=torch.float64, device=found.device)
    low, high = known.quantile(edges).tolist()
    return Estimate(value, low, high)


def t_interval(values: Tensor) -> Estimate:
    """The mean of one value per seed with its 95 % interval, which knows nothing of images."""
    mean, error, freedom = _spread(values)
    reach = student.ppf(0.975, freedom) * error if freedom > 0 else math.nan
    return Estimate(mean, mean - reach, mean + reach)


def _spread(values: Tensor) -> tuple[float, float, int]:
    known = values.double()[~values.isnan()]
    count = len(known)
    error = known.std().item() / math.sqrt(count) if count > 1 else math.nan
    return known.mean().item() if count else math.nan, error, count - 1


def holm(values: Mapping[Key, float]) -> dict[Key, float]:
    """p values corrected for their number by Holm's step-down; one that is NaN stays so, and counts."""
    found, largest = dict(values), 0.0
    order = sorted(values, key=lambda key: math.inf if math.isnan(values[key]) else values[key])
    for place, key in enumerate(order):
        if math.isnan(values[key]):
            continue
        largest = max(largest, min(1.0, (len(order) - place) * values[key]))
        found[key] = largest
    return found


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided t-tests that a mean lies within a margin of 0."""

    p: float
    holds: bool  # at 5 %


def equivalent(values: Tensor, margin: float) -> Equivalence:
    """Of one value per seed."""
    mean, error, freedom = _spread(values)
    if freedom < 1:
        return Equivalence(math.nan, False)
    if error == 0:
        return Equivalence(float(abs(mean) >= margin), abs(mean) < margin)
    p = max(student.sf((margin - mean) / error, freedom), student.sf((margin + mean) / error, freedom))
    return Equivalence(float(p), bool(p < 0.05))
