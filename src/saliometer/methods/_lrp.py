"""Layer-wise relevance propagation: rules that hand a unit's relevance down to its inputs (Bach et al., 2015).

LRP is reported by its authors to be patented, free for personal and scientific use only; check before commercial use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saliometer.graph import (
    Graph,
    Here,
    Network,
    Pass,
    Rules,
    Signals,
    Step,
    UnfitError,
    family,
    gate_of,
    once,
    transpose,
    walk,
)  # fmt: skip
from saliometer.methods._kernels import applied, bias_of, weights_of
from saliometer.methods._path import vanishes
from saliometer.methods._relevance import (
    NO_BIAS,
    Books,
    MixedError,
    Relevance,
    Sloped,
    divided,
    largest_share,
    over,
    whole,
)
from saliometer.types import Asking, Batch, Explained, Walk

Part = Callable[[Here, Any, Books], Signals]  # a rule that says where the rest of the relevance went
BIASES = ("split", "full", "ignore")  # how a bias joins the two halves of alpha-beta
JOINS = ("cat", "concat", "stack", "pad", "constant_pad_nd")  # routes that may bring in constants
SMALLEST = 1e-7  # a denominator below this counts as zero where a rule lets it cross zero
Pairs = Sequence[tuple[Tensor, Tensor]]  # activations and weights


def shares(here: Here, relevance: Relevance, pairs: Pairs, bias: Tensor, books: Books) -> Tensor:
    """What the pairs of activations and weights get: q = R / (sum of the pairs + bias), sent back over the weights."""
    slopes = slopes_over(here, relevance, pairs, bias, books)
    return joined([activations for activations, _ in pairs], slopes)


def joined(activations: Sequence[Tensor], slopes: Sequence[Tensor]) -> Tensor:
    """The sum of each one's activations times its slopes."""
    total = activations[0] * slopes[0]
    for one, slope in zip(activations[1:], slopes[1:], strict=True):
        total.addcmul_(one, slope)
    return total


def slopes_over(
    here: Here, relevance: Relevance, pairs: Pairs, bias: Tensor, books: Books, smallest: float = 0.0, share: float = 1
) -> Sequence[Tensor]:
    """For each pair, q = a share of R / (sum of the pairs + bias) sent back over its weights."""
    with torch.enable_grad():
        leaves = [activations.detach().requires_grad_() for activations, _ in pairs]
        parts = [applied(here.step, leaf, weights) for leaf, (_, weights) in zip(leaves, pairs, strict=True)]
    total = sum((part.detach() for part in parts[1:]), start=parts[0].detach())
    quotient = divided(relevance, total, bias, books, missing=True, smallest=smallest, share=share)
    return torch.autograd.grad(parts, leaves, [quotient] * len(parts))


def part_of(values: Tensor, sign: int) -> Tensor:
    """What is positive, or with a sign of -1 what is negative, and 0 elsewhere."""
    return values.clamp(min=0) if sign > 0 else values.clamp(max=0)


def signed(here: Here) -> tuple[Tensor, Tensor | None]:
    """The positive and the negative part of a kernel's input; None where the network allows no negative values."""
    activations: Tensor = here.inputs[0]
    if not_negative(here.graph)[here.step.inputs[0]]:
        return activations, None
    return activations.clamp(min=0), activations.clamp(max=0)


def z(epsilon: float = 0.0, scale: str = "absolute") -> Part:
    """In proportion to each input's part of the sum; `epsilon` is added to the sum, or that share of its own rms."""

    def rule(here: Here, relevance: Relevance, books: Books) -> Signals:
        bias = constant_of(here)
        total = relevance.value if isinstance(relevance, Sloped) else here.output  # where a ReLU is closed, R is 0
        if scale == "rms":
            quotient = _over_rms(whole(relevance), here.output, epsilon, books)
            books.add_bias(quotient, bias)
        elif epsilon or not isinstance(relevance, Sloped):
            quotient = divided(relevance, total, bias, books, epsilon=epsilon)
        else:
            quotient = relevance.uncut  # R / total is the slope itself
            books.add_bias(quotient, bias)
        return sloped(here.inputs, here.back(quotient))

    return rule


def sloped(values: Sequence[Tensor], slopes: Signals) -> Signals:
    """Relevance in proportion to values; none where no slope came."""
    return [None if slope is None else Sloped(value, slope) for value, slope in zip(values, slopes, strict=True)]


def _over_rms(relevance: Tensor, total: Tensor, epsilon: float, books: Books) -> Tensor:
    """R / total, kept from zero by a share of the layer's own size, which may be 0."""
    width = epsilon * total.square().mean(tuple(range(1, total.ndim)), keepdim=True).sqrt()
    stabiliser = torch.copysign(width, total)
    quotient = over(relevance, total + stabiliser, books)
    books.add("epsilon", quotient * stabiliser)
    return quotient


def constant_of(here: Here) -> Tensor:
    """What an affine operation adds whatever goes in."""
    kind = family(here.graph, here.step)
    if kind == "kernel":
        return bias_of(here)
    if kind in ("average", "add"):
        return NO_BIAS
    zeros = {number: torch.zeros_like(value) for number, value in zip(here.step.inputs, here.inputs, strict=True)}
    result: Tensor = here.step(zeros)
    return result


def alpha_beta(alpha: float, beta: float, bias: str = "split") -> Part:
    """Alpha of the relevance to what speaks for a unit, minus beta to what speaks against; `bias` joins as named."""

    def rule(here: Here, relevance: Relevance, books: Books) -> Signals:
        plus, minus = signed(here)
        weights, offset = weights_of(here.step), bias_of(here)
        smallest = SMALLEST if bias == "full" else 0.0

        def half(sign: int, share: float) -> Sequence[Tensor]:
            pairs = [(plus, part_of(weights, sign))]
            if minus is not None:
                pairs.append((minus, part_of(weights, -sign)))
            part = part_of(offset, sign) if bias == "split" else offset if bias == "full" else NO_BIAS
            return slopes_over(here, relevance, pairs, part, books, smallest, share)

        slopes = half(1, alpha)
        if beta:
            slopes = [one.add_(other) for one, other in zip(slopes, half(-1, -beta), strict=True)]
        return _both(plus, minus, slopes)

    return rule


def _both(plus: Tensor, minus: Tensor | None, slopes: Sequence[Tensor]) -> Signals:
    """The relevance of the positive and the negative part of an input, or of an input that has but one."""
    return sloped([plus], slopes) if minus is None else [joined([plus, minus], slopes)]


def gamma(share: float) -> Part:
    """Like z, but what speaks for the sign of the sum counts `share` more."""

    def more(values: Tensor, sign: int) -> Tensor:
        return values.add(part_of(values, sign), alpha=share)

    def rule(here: Here, relevance: Relevance, books: Books) -> Signals:
        plus, minus = signed(here)
        weights, offset = weights_of(here.step), bias_of(here)

        def half(sign: int, chosen: Relevance) -> Sequence[Tensor]:
            pairs = [(plus, more(weights, sign))]
            if minus is not None:
                pairs.append((minus, more(weights, -sign)))
            return slopes_over(here, chosen, pairs, more(offset, sign), books)

        if isinstance(relevance, Sloped) and relevance.cut:  # there is none at negative sums
            return _both(plus, minus, half(1, relevance))
        if isinstance(relevance, Sloped):
            above: Relevance = replace(relevance, value=part_of(relevance.value, 1))
            below: Relevance = replace(relevance, value=part_of(relevance.value, -1))
        else:
            books.add("lost", torch.where(here.output == 0, relevance, 0))
            above, below = (torch.where(side, relevance, 0) for side in (here.output > 0, here.output < 0))
        slopes = [one.add_(other) for one, other in zip(half(1, above), half(-1, below), strict=True)]
        return _both(plus, minus, slopes)

    return rule


def flat(here: Here, relevance: Relevance, books: Books) -> Signals:
    """The same to every input."""
    pairs = [(ones_there(here), torch.ones_like(weights_of(here.step)))]
    return [shares(here, relevance, pairs, NO_BIAS, books)]


def w_square(here: Here, relevance: Relevance, books: Books) -> Signals:
    """In proportion to the squared weights."""
    pairs = [(ones_there(here), weights_of(here.step).square())]
    return [shares(here, relevance, pairs, NO_BIAS, books)]


def z_box(low: Tensor, high: Tensor) -> Part:
    """For the first layer: in proportion to how far each input can still move the sum within its bounds."""

    def rule(here: Here, relevance: Relevance, books: Books) -> Signals:
        activations, weights = here.inputs[0], weights_of(here.step)
        least, most = bounds_there(here, low, high)
        books.checks.append(partial(_within, activations, least, most))
        pairs = [(activations - least, part_of(weights, 1)), (activations - most, part_of(weights, -1))]
        return [shares(here, relevance, pairs, NO_BIAS, books)]

    return rule


def _within(activations: Tensor, least: Tensor, most: Tensor) -> None:
    wrong = (activations < least - 1e-4) | (activations > most + 1e-4)
    if bool(wrong.any()):
        raise UnfitError(
            f"what enters the first layer reaches from {float(activations.min()):.3g} to "
            f"{float(activations.max()):.3g}, beyond the bounds {float(least.min()):.3g} to {float(most.max()):.3g} "
            "that this rule needs: say how images are normalised (explain's mean= and std=), or give pixels in [0, 1]; "
            "pixels from 0 to 255 have std=1/255; with noise added, as for sensitivity, images may leave any bounds"
        )


def ones_there(here: Here) -> Tensor:
    """1 for every value that enters a first layer, 0 where the network puts constants beside the images."""
    start = torch.zeros_like(here.forward.values[0])
    low, high = _sent_there(here, start), _sent_there(here, start + 1)
    return (high != low).to(start)


def bounds_there(here: Here, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """The bounds of what enters a first layer: the images' own, sent through whatever comes before it."""
    images = here.forward.values[0]
    ends = [
        _sent_there(here, bound.clone().expand_as(images)) for bound in (low, high)
    ]  # callers may be in inference mode
    return torch.minimum(*ends), torch.maximum(*ends)


def _sent_there(here: Here, images: Tensor) -> Tensor:
    """What enters a first layer if the network is given other images."""
    values: dict[int, Any] = {0: images}
    for step in here.graph.steps[1 : here.step.inputs[0] + 1]:
        if set(step.inputs) <= set(values):
            values[step.number] = step(values)
    entering: Tensor = values[here.step.inputs[0]]
    return entering


# Operations without weights


def keep(here: Here, relevance: Relevance, books: Books) -> Signals:
    """Relevance passes unchanged; a factor that was spread over its input gathers it again."""
    return here.only(whole(relevance).sum_to_size(here.inputs[here.main].shape))


def rectified(here: Here, relevance: Relevance, books: Books) -> Signals:
    """A ReLU: relevance passes unchanged, and there is none where it is closed."""
    return here.only(replace(relevance, cut=True) if isinstance(relevance, Sloped) else relevance)


def passed(here: Here, relevance: Any, books: Books) -> Signals:
    """Routed as the values were; a maximum's winner takes all, and constants beside the values are biases."""
    several = relevance if isinstance(relevance, list) else [relevance]
    if here.step.op in JOINS and _has_constants(here.step):
        sent = transpose(here, whole(relevance))
        books.add("bias", whole(relevance))
        for part in sent:
            if part is not None:
                books.add("bias", -part)
        return sent
    if all(one is None or isinstance(one, Sloped) for one in several):
        slopes = [None if one is None else one.uncut for one in several]
        return sloped(here.inputs, transpose(here, slopes if isinstance(relevance, list) else slopes[0]))
    parts = [None if one is None else whole(one) for one in several]
    return transpose(here, parts if isinstance(relevance, list) else parts[0])


def to_the_signal(here: Here, relevance: Relevance, books: Books) -> Signals:
    """A product with a gate: the gate gets nothing (Arras et al., 2017)."""
    gate = gate_of(here.graph, here.step)
    place = next(place for place, number in enumerate(here.step.inputs) if number != gate)
    return here.only(whole(relevance).sum_to_size(here.inputs[place].shape), place)


def added(here: Here, relevance: Relevance, books: Books) -> Signals:
    """A sum of branches: each its part; where large ones cancel, their shares blow up, and the books say how far."""
    if is_plain_sum(here) and isinstance(relevance, Sloped):
        slope = relevance.uncut
        books.note("largest_share", largest_share(here.inputs[0], here.output, slope))
        return sloped(here.inputs, [slope, slope])
    total = here.output.where((whole(relevance) != 0) & (here.output != 0), torch.inf)
    for value in here.inputs:
        books.note("largest_share", value / total)
    return z()(here, relevance, books)


def is_plain_sum(here: Here) -> bool:
    """Whether a step adds two branches of one shape, neither of them scaled."""
    shapes = [value.shape for value in here.inputs]
    return here.step.op == "add" and not here.step.kwargs and shapes == [here.output.shape] * 2


def shifted(here: Here, relevance: Relevance, books: Books) -> Signals:
    """A constant is added: it takes its share as a bias does, but not where images are only normalised."""
    if here.step.number in before_first(here.graph):
        return keep(here, relevance, books)
    return z()(here, relevance, books)


COMMON: Mapping[str, Part] = {
    "relu": rectified,
    **dict.fromkeys(("relu_capped", "from_zero", "scale"), keep),
    **dict.fromkeys(("max", "route", "same"), passed),
    "average": z(1e-9),
    "add": added,
    "affine": z(1e-9),
    "shift": shifted,
    "gated": to_the_signal,
}


# A network's structure


@once
def not_negative(graph: Graph) -> tuple[bool, ...]:
    """For each step, whether the network allows no negative values there."""
    found: list[bool] = []
    for step in graph.steps:
        kind = family(graph, step) if step.number else ""
        summed = kind == "add" and step.op == "add" and not step.kwargs
        inherited = summed or kind in ("max", "average", "route", "same")
        inherited = inherited and (step.op not in JOINS or not _constants(step))
        found.append(kind in ("relu", "relu_capped", "gate") or (inherited and all(found[n] for n in step.inputs)))
    return tuple(found)


def _constants(step: Step) -> bool:
    """Whether a route brings in values of its own that may be negative."""
    if step.op in ("pad", "constant_pad_nd"):
        return any(isinstance(value, int | float) and value < 0 for value in (*step.args, *step.kwargs.values()))
    return _has_constants(step)


def _has_constants(step: Step) -> bool:
    """Whether a join has values of its own beside those it joins."""
    return not isinstance(step.args[0], tuple | list) or any(isinstance(value, Tensor) for value in step.args[0])


@once
def before_first(graph: Graph) -> frozenset[int]:
    """The images and what only normalises or routes them."""
    found = {0}
    for step in graph.steps[1:]:
        if family(graph, step) in ("shift", "scale", "norm", "route", "same") and set(step.inputs) <= found:
            found.add(step.number)
    return frozenset(found)


def layered(first: Part, convolution: Part, dense: Part) -> Part:
    """Another rule for what reads the images, for convolutions and for linear layers."""

    def rule(here: Here, relevance: Relevance, books: Books) -> Signals:
        if here.step.inputs[0] in before_first(here.graph):
            return first(here, relevance, books)
        chosen = convolution if here.step.op.startswith("conv") else dense
        return chosen(here, relevance, books)

    return rule


def table(kernel: Part, norm: Part) -> dict[str, Part]:
    return {**COMMON, "kernel": kernel, "norm": norm}


def bound(parts: Mapping[str, Part], books: Books) -> Rules:
    """Rules as a walk takes them, writing into these books."""
    return {name: partial(_booked, part, books) for name, part in parts.items()}


def _booked(part: Part, books: Books, here: Here, signal: Any) -> Signals:
    return part(here, signal, books)


def descended(forward: Pass, start: Relevance, parts: Mapping[str, Part], books: Books) -> Tensor:
    """What reaches the images of the relevance that is put on the logits."""
    return whole(walk(forward, start, bound(parts, books)))


def relevances(batch: Batch, parts: Mapping[str, Part], *, positive: bool = False) -> Asking:
    """Relevance of every input value, starting from the target's logit; what does not arrive is accounted for."""
    told: list[tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]] = []  # starts, parts of the books, largest sizes

    def run(network: Network, rows: slice) -> Tensor:
        try:
            return together(network, rows)
        except MixedError:
            places = range(*rows.indices(len(batch.images)))
            return torch.cat([together(network, slice(place, place + 1)) for place in places])

    def together(network: Network, rows: slice) -> Tensor:
        forward, books = network.run(network.laid_out(batch.images[rows]), fold=True), Books()
        targets = batch.targets[rows, None]
        start = forward.logits.gather(1, targets)
        start = start.relu() if positive else start
        slope = torch.zeros_like(forward.logits).scatter_(1, targets, (start > 0).to(start) if positive else 1)
        found = descended(forward, Sloped(forward.values[forward.graph.output], slope), parts, books)
        for check in books.checks:
            check()
        told.append((start[:, 0].double(), books.totals(len(start)), books.largest(len(start))))
        return found

    maps = yield Walk(batch.images, run)
    start = torch.cat([one for one, _, _ in told])
    names, noted = ({name for one in told for name in one[kind]} for kind in (1, 2))
    names |= {"bias", "lost"}
    facts = {name: torch.cat([parts.get(name, torch.zeros_like(s)) for s, parts, _ in told]) for name in sorted(names)}
    largest = {name: torch.cat([most.get(name, torch.zeros_like(s)) for s, _, most in told]) for name in noted}
    missing = start - maps.double().flatten(1).sum(1)
    closing = missing - sum(facts.values(), start=torch.zeros_like(start))
    flags = {"zero_gradient": vanishes(maps)}
    if positive:
        flags = {"negative_target": start <= 0}
    tolerance = 1e-4 if maps.dtype == torch.float32 else 1e-9
    scale = start.abs() + maps.double().abs().flatten(1).sum(1) + sum(part.abs() for part in facts.values())
    return Explained(
        maps,
        -missing,
        start,
        {**flags, "loose": closing.abs() > tolerance * scale},
        {**facts, **largest, "closing": closing},
    )
