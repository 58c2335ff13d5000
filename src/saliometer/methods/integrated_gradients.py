"""Integrated gradients: the gradient averaged on the way from a baseline to the image (Sundararajan et al., 2017)."""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Gradients, Model, each

Points = tuple[list[float], list[float]]  # where on the way from 0 to 1, and with which weight


def _gauss_legendre(steps: int) -> Points:
    roots, weights = np.polynomial.legendre.leggauss(steps)
    return ((roots + 1) / 2).tolist(), (weights / 2).tolist()


def _even(offset: float) -> Callable[[int], Points]:
    return lambda steps: ([(k + offset) / steps for k in range(steps)], [1 / steps] * steps)


def _trapezoid(steps: int) -> Points:
    if steps < 2:
        raise ValueError(f"integrated_gradients: rule=trapezoid needs steps of 2 or more, got {steps}")
    inner = 1 / (steps - 1)
    return [k * inner for k in range(steps)], [inner / 2, *[inner] * (steps - 2), inner / 2]


RULES: dict[str, Callable[[int], Points]] = {
    "gauss_legendre": _gauss_legendre,
    "middle": _even(0.5),
    "left": _even(0.0),
    "right": _even(1.0),
    "trapezoid": _trapezoid,
}


@method(quick={"steps": 4})
def integrated_gradients(
    model: Model, batch: Batch, *, steps: int = 50, rule: str = "gauss_legendre", baseline: str = "zero"
) -> Asking:
    """The gradient averaged from a baseline to the image, times their difference; sums to the change in score."""
    if steps < 1:
        raise ValueError(f"integrated_gradients: steps={steps}, wanted 1 or more")
    places, weights = RULES[one_of("rule", rule, RULES)](steps)
    start = filled(model, batch.images, baseline)
    way = batch.images - start

    def between(k: int) -> Tensor:
        return start + places[k] * way

    def weighted(k: int, slope: Tensor) -> Tensor:
        return weights[k] * slope

    return way * (yield Gradients(each(between), steps, weighted))
