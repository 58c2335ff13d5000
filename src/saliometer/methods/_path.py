"""Ways from a baseline to an image: where to stop and how much each stop counts, and whether the sum came out right."""

from collections.abc import Callable, Generator, Mapping

import numpy as np
import torch
from torch import Tensor

from saliometer.registry import one_of
from saliometer.types import Explained, Gradients, Question, Scores, Variants

OUTPUTS = ("logit", "probability")
TOLERANCE = 1e-2  # beyond it, relative to what was promised, a sum is loose

Points = tuple[list[float], list[float]]  # where on the way from 0 to 1, and with which weight


def _gauss_legendre(steps: int) -> Points:
    roots, weights = np.polynomial.legendre.leggauss(steps)
    return ((roots + 1) / 2).tolist(), (weights / 2).tolist()


def _even(offset: float) -> Callable[[int], Points]:
    return lambda steps: ([(k + offset) / steps for k in range(steps)], [1 / steps] * steps)


def _trapezoid(steps: int) -> Points:
    inner = 1 / (steps - 1)
    return [k * inner for k in range(steps)], [inner / 2, *[inner] * (steps - 2), inner / 2]


def _pair(steps: int) -> Points:
    """Both ends, all alike: that of Google's PAIR library."""
    return [k / (steps - 1) for k in range(steps)], [1 / steps] * steps


RULES: dict[str, Callable[[int], Points]] = {
    "gauss_legendre": _gauss_legendre,
    "middle": _even(0.5),
    "left": _even(0.0),
    "right": _even(1.0),
    "trapezoid": _trapezoid,
    "pair": _pair,
}


def points(name: str, rule: str, steps: int) -> Points:
    """The stops of a rule, or an error in the name of the method that asks."""
    one_of("rule", rule, RULES)
    fewest = 2 if rule in ("trapezoid", "pair") else 1
    if steps < fewest:
        raise ValueError(f"{name}: steps={steps}, wanted {fewest} or more for rule={rule}")
    return RULES[rule](steps)


def straight(start: Tensor, way: Tensor, stops: Points, output: str) -> Gradients:
    """The question for the gradient averaged over stops on a straight way."""
    places, weights = way.new_tensor(stops[0]).view(-1, 1, 1, 1, 1), stops[1]

    def between(ks: range) -> Tensor:
        return start + places[ks.start : ks.stop] * way

    return Gradients(between, len(weights), lambda k, slope: weights[k] * slope, of=output)


def pair_of(one: Tensor, other: Tensor) -> Variants:
    return lambda ks: torch.stack((one, other))[ks.start : ks.stop]


def risen(start: Tensor, end: Tensor, output: str) -> Generator[Question, Tensor, Tensor]:
    """(N,) float64: how much the score rises from one image to the other; exactly 0 where they are the same."""
    scores = (yield Scores(pair_of(start, end), 2, of=output)).double()
    return (scores[1] - scores[0]).masked_fill(vanishes(end - start), 0)


def vanishes(values: Tensor) -> Tensor:
    """(N,) bool: images whose values are all exactly 0."""
    return values.flatten(1).abs().amax(1) == 0


def missed(maps: Tensor, promised: Tensor) -> Tensor:
    """(N,) float64: how far the sum of each map is from what was promised."""
    return maps.sum((1, 2, 3), dtype=torch.float64) - promised


def loose(maps: Tensor, promised: Tensor) -> Tensor:
    return missed(maps, promised).abs() > TOLERANCE * promised.abs().clamp(min=1e-6)


def complete(maps: Tensor, promised: Tensor, flags: Mapping[str, Tensor], facts: Mapping[str, Tensor]) -> Explained:
    """Maps that should sum to what was promised, and whether they do."""
    flags = {**flags, "loose": loose(maps, promised)}
    return Explained(maps, missed(maps, promised), promised, flags, facts)
