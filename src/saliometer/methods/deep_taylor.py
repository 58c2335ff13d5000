"""Deep Taylor, bounded: relevance that is never negative, and bounds at the input (Montavon et al., 2017)."""

import torch
from torch import Tensor

from saliometer.graph import Here, Signals
from saliometer.methods._lrp import (
    COMMON,
    Part,
    alpha_beta,
    is_plain_sum,
    keep,
    layered,
    not_negative,
    relevances,
    w_square,
    z_box,
)  # fmt: skip
from saliometer.methods._relevance import NO_BIAS, Books, Relevance, Sloped, divided
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


def _positive(here: Here) -> list[tuple[Tensor, bool]]:
    """What is positive of each input, and whether anything had to be cut off."""
    known = not_negative(here.graph)
    pairs = zip(here.step.inputs, here.inputs, strict=True)
    return [(value if known[number] else value.clamp(min=0), not known[number]) for number, value in pairs]


def _average(here: Here, relevance: Relevance, books: Books) -> Signals:
    """In proportion to what is positive."""
    ((positive, cut),) = _positive(here)
    total = here.step({here.step.inputs[0]: positive})
    sent = here.back(divided(relevance, total, NO_BIAS, books))[0]
    return [None if sent is None else Sloped(positive, sent, cut)]


def _add(here: Here, relevance: Relevance, books: Books) -> Signals:
    """To each branch in proportion to its positive part."""
    if is_plain_sum(here):
        parts = _positive(here)
        quotient = divided(relevance, parts[0][0] + parts[1][0], NO_BIAS, books)
        return [Sloped(part, quotient, cut) for part, cut in parts]
    pairs = list(zip(here.step.inputs, here.inputs, strict=True))
    zeros = {number: torch.zeros_like(value) for number, value in pairs}
    terms = [here.step({**zeros, number: value}).clamp(min=0) for number, value in pairs]
    quotient = divided(relevance, sum(terms[1:], start=terms[0]), NO_BIAS, books)
    return [(term * quotient).sum_to_size(value.shape) for term, (_, value) in zip(terms, pairs, strict=True)]


def _table(kernel: Part) -> dict[str, Part]:
    common = {name: part for name, part in COMMON.items() if name not in ("from_zero", "gated", "affine")}
    return {**common, "kernel": kernel, "norm": keep, "average": _average, "add": _add, "shift": keep}


@method(rules=_table(layered(w_square, alpha_beta(1, 0), alpha_beta(1, 0))), passes=3, unit="contribution")
def deep_taylor(model: Model, batch: Batch, *, bias: str = "ignore") -> Asking:
    """Relevance to what speaks for a unit, bounded at the input; never negative, empty for a negative logit."""
    one_of("bias", bias, ("ignore", "full"))
    plus = alpha_beta(1, 0, bias)
    kernel = layered(z_box(*model.bounds(batch.images)), plus, plus)
    return (yield from relevances(batch, _table(kernel), positive=True))
