"""DeepLIFT with the RevealCancel rule: what raises and what lowers a unit is followed apart (Shrikumar et al., 2017).

Every step carries its difference to the baseline as a part P >= 0 and a part N <= 0, and each part has a multiplier of
its own; signals on the walk are stacked, the one for P first.
"""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from saliometer import fused
from saliometer.graph import (
    Chosen,
    Graph,
    Here,
    Network,
    Pass,
    RefusedError,
    Rules,
    Signals,
    Step,
    family,
    is_mask,
    walk,
)
from saliometer.methods._deeplift import after, before, compared, difference, maximum, near, product, slope
from saliometer.methods._kernels import applied, weights_of
from saliometer.methods._rules import on_target
from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model, Walk


class Parts(dict[int, Any]):
    """For each step (2, N, ...), P and N, or a tuple of them for a step with several outputs."""

    def __init__(self) -> None:
        self.sizes: dict[int, tuple[Tensor, Tensor]] = {}  # of kernels: |dx|, and what |W| makes of it


def signs(values: Tensor) -> Tensor:
    return torch.stack((values.clamp(min=0), values.clamp(max=0)))


# Forward: the two parts of every step's difference


def parts_of(forward: Pass, reference: Chosen, rescaled: Callable[[Graph, Step], bool]) -> Parts:
    parts = Parts()
    parts[0] = signs(forward.values[0] - reference.values[0])
    for step in forward.graph.steps[1:]:
        parts[step.number] = _part(Here(forward, step, reference), parts, rescaled)
    return parts


def _part(here: Here, parts: Parts, rescaled: Callable[[Graph, Step], bool]) -> Any:
    kind, step = family(here.graph, here.step), here.step
    if is_mask(here.graph, step.number):
        return None
    if kind == "kernel":
        with torch.enable_grad():
            length = here.change(step.inputs[0]).abs_().requires_grad_()
            size = applied(step, length, weights_of(step).abs())
        parts.sizes[step.number] = length, size
        return _halves(here, size.detach())  # for W+ is (W + |W|) / 2
    if kind in ("relu", "relu_capped", "from_zero", "gate", "elementwise"):
        return _revealed(here, parts[step.inputs[here.main]], rescaled(here.graph, step))
    if kind in ("norm", "scale"):
        given, factor = parts[step.inputs[0]], _factor(here)
        return torch.where(factor >= 0, given * factor, given.flip(0) * factor)
    if kind == "add":
        first, *others = (_times(parts[number], sign) for number, sign in _terms(here))
        return sum(others, start=first)
    if step.op == "identity":
        return parts[step.inputs[0]]
    if kind in ("average", "route", "same", "shift"):
        return _linear(here, parts)
    if kind in ("max", "product", "gated"):
        return signs(here.change(step.number))
    raise RefusedError(f"there is no rule for the operation {step}")


def _linear(here: Here, parts: Parts) -> Any:
    """Both parts through an operation, without what it adds by itself."""
    zeros = {number: _each(parts[number], lambda part: torch.zeros_like(part[0])) for number in here.step.inputs}
    nothing = here.step(zeros)
    halves = ([_each(parts[n], operator.itemgetter(k)) for n in here.step.inputs] for k in (0, 1))
    found = [here.step(dict(zip(here.step.inputs, half, strict=True))) for half in halves]
    if isinstance(nothing, tuple | list):
        return tuple(torch.stack((p - z, n - z)) for p, n, z in zip(*found, nothing, strict=True))
    return torch.stack((found[0] - nothing, found[1] - nothing))


def _each(value: Any, take: Callable[[Tensor], Tensor]) -> Any:
    return tuple(take(one) for one in value) if isinstance(value, tuple) else take(value)


def _function(here: Here, value: Tensor) -> Tensor:
    """The step's elementwise function at other values."""
    result: Tensor = here.step({n: value if p == here.main else value > 0 for p, n in enumerate(here.step.inputs)})
    return result


def _revealed(here: Here, given: Tensor, rescaled: bool) -> Tensor:
    """Each part's effect, averaged over whether the other part is there already."""
    if rescaled:
        return given * _ratio(here)
    if family(here.graph, here.step) == "relu" and (kernels := fused.kernels(given)):
        effect: Tensor = kernels.revealed(given, *here.reference.beside(here.step.inputs[here.main], here.forward))
        return effect
    high, low = _function(here, (given + before(here)[1]).flatten(0, 1)).unflatten(0, (2, -1))
    return _halves(here, high - low)


def _halves(here: Here, apart: Tensor) -> Tensor:
    """(2, N, ...): the parts of a step's difference which they add up to, and which lie so far apart."""
    if kernels := fused.kernels(apart):
        halves: Tensor = kernels.halved(apart, *here.reference.beside(here.step.number, here.forward))
        return halves
    whole = here.change(here.step.number)
    both = whole.new_empty((2, *whole.shape))
    torch.lerp(whole, apart, 0.5, out=both[0])
    torch.sub(whole, both[0], out=both[1])
    return both


def _ratio(here: Here) -> Tensor:
    (value, start), (output, expected) = before(here), after(here)
    still = near(value, start)
    return torch.where(still, slope(here, (value + start) / 2), (output - expected) / (value - start).where(~still, 1))


def _factor(here: Here) -> Tensor:
    """What a step multiplies each value by."""
    ones = {number: torch.ones_like(value) for number, value in zip(here.step.inputs, here.inputs, strict=True)}
    zeros = {number: torch.zeros_like(value) for number, value in zip(here.step.inputs, here.inputs, strict=True)}
    factor: Tensor = here.step(ones) - here.step(zeros)
    return factor


def _times(both: Tensor, factor: float) -> Tensor:
    """P and N, or their multipliers, times a number; a negative one makes them change places."""
    return both if factor == 1 else both * factor if factor > 0 else both.flip(0) * factor


def _terms(here: Here) -> list[tuple[int, float]]:
    """The steps that a sum adds up, with their factors; found once, for it waits for a GPU."""
    known = here.graph.facts.setdefault("terms", {})
    if here.step.number not in known:
        known[here.step.number] = _found_terms(here)
    return known[here.step.number]  # type: ignore[no-any-return]


def _found_terms(here: Here) -> list[tuple[int, float]]:
    zeros = {number: torch.zeros_like(value[:1]) for number, value in zip(here.step.inputs, here.inputs, strict=True)}
    found = []
    for number in here.step.inputs:
        changed = here.step({**zeros, number: torch.ones_like(zeros[number])})
        found.append((number, float(changed.flatten()[0])))
    return found


# Backward: two multipliers for every step


def rules(parts: Parts, rescaled: Callable[[Graph, Step], bool]) -> Rules:
    """What a walk needs to know of the parts."""

    def kernel(here: Here, m: Tensor) -> Signals:
        """W+ m+ + W- m- where the input has risen, W- m+ + W+ m- where it has fallen: (W s + sign(dx) |W| d) / 2."""
        length, size = parts.sizes[here.step.number]
        (straight,) = here.back(torch.lerp(m[0], m[1], 0.5))
        (crossed,) = torch.autograd.grad(size, length, m[0] - m[1])
        if kernels := fused.kernels(straight):
            joined = kernels.crossed(straight, crossed, *here.reference.beside(here.step.inputs[0], here.forward))
        else:
            joined = torch.addcmul(straight, here.change(here.step.inputs[0]).sign_(), crossed, value=0.5)
        return [joined.expand(2, *joined.shape)]

    def opened(here: Here, m: Tensor) -> Signals:
        """A ReLU: the share of each part's way on which it is open, without the other part and with it."""
        if rescaled(here.graph, here.step):
            return here.only(m * _ratio(here))
        number = here.step.inputs[here.main]
        if kernels := fused.kernels(m):
            return here.only(kernels.opened(m, parts[number], *here.reference.beside(number, here.forward)))
        given, (value, start) = parts[number], before(here)
        length = given.abs().clamp_(min=torch.finfo(value.dtype).tiny)
        high = ((start + given[0]) / length).clamp_(0, 1)  # where the rise ends and the fall begins
        other = torch.empty_like(length)  # the other order: the rise ends at `value`, the fall begins at `start`
        torch.div(value, length[0], out=other[0])
        torch.div(start, length[1], out=other[1])
        return here.only(high.add_(other.clamp_(0, 1)).mul_(m).div_(2))

    def revealed(here: Here, m: Tensor) -> Signals:
        given, effect = parts[here.step.inputs[here.main]], parts[here.step.number]
        if rescaled(here.graph, here.step):
            return here.only(m * _ratio(here))
        start, other = before(here)[1], given.flip(0)
        still = given.abs() <= 32 * torch.finfo(given.dtype).eps * (start.abs() + other.abs()).clamp(min=1)
        limit = torch.stack([(slope(here, start) + slope(here, start + one)) / 2 for one in other])
        return here.only(m * torch.where(still, limit, effect / given.where(~still, 1)))

    def scaled(here: Here, m: Tensor) -> Signals:
        factor = _factor(here)
        sent = torch.where(factor >= 0, m * factor, m.flip(0) * factor)
        return here.only(torch.stack([one.sum_to_size(here.inputs[here.main].shape) for one in sent]))

    def added(here: Here, m: Tensor) -> Signals:
        return [
            _times(m, factor).sum_to_size(2, *value.shape)
            for (_, factor), value in zip(_terms(here), here.inputs, strict=True)
        ]

    def linear(here: Here, m: Any) -> Signals:
        if isinstance(m, list):  # a step with several outputs
            halves = [here.back([None if one is None else one[k] for one in m]) for k in (0, 1)]
        else:
            halves = [here.back(m[k].contiguous()) for k in (0, 1)]
        return [None if p is None or n is None else torch.stack((p, n)) for p, n in zip(*halves, strict=True)]

    def joined(rule: Callable[[Here, Tensor], Signals]) -> Callable[[Here, Tensor], Signals]:
        def joint(here: Here, m: Tensor) -> Signals:
            chosen = torch.where(here.change(here.step.number) > 0, m[0], m[1])
            return [None if s is None else s.expand(2, *s.shape) for s in rule(here, chosen)]

        return joint

    return {
        "kernel": kernel,
        "relu": opened,
        **dict.fromkeys(("relu_capped", "from_zero", "gate", "elementwise"), revealed),
        **dict.fromkeys(("norm", "scale"), scaled),
        **dict.fromkeys(("average", "route", "same", "shift"), linear),
        "add": added,
        "max": joined(maximum),
        **dict.fromkeys(("product", "gated"), joined(product)),
    }


def _nowhere(_graph: Graph, _step: Step) -> bool:
    return False


def _after_convolution(graph: Graph, step: Step) -> bool:
    source = graph.steps[next(number for number in step.inputs if not is_mask(graph, number))]
    while family(graph, source) in ("norm", "scale", "shift", "add", "same", "route", "max", "average"):
        source = graph.steps[source.inputs[0]]
    return source.op.startswith("conv")


MODES = {"all": _nowhere, "genomics": _after_convolution}


@method(rules=rules(Parts(), _nowhere), passes=6, unit="contribution", multiplier="baseline")
def deeplift_reveal_cancel(model: Model, batch: Batch, *, baseline: str = "zero", mode: str = "all") -> Asking:
    """DeepLIFT with what raises and lowers the score kept apart; mode=genomics: Rescale behind convolutions."""
    rescaled = MODES[one_of("mode", mode, MODES)]
    start = filled(model, batch.images, baseline, references=batch.references, seeds=batch.seeds)
    risen: list[Tensor] = []

    def run(network: Network, rows: slice) -> Tensor:
        forward = network.run(batch.images[rows], fold=True, keep=True)
        reference = compared(network, forward, start[rows], baseline)
        chosen = on_target(forward.logits, batch.targets[rows])
        table = rules(parts_of(forward, reference, rescaled), rescaled)
        up, down = walk(forward, torch.stack((chosen, chosen)), table, reference)
        risen.append((chosen * (forward.logits - reference.logits)).double().sum(1))
        way = batch.images[rows] - start[rows]
        return torch.where(way > 0, up, down) * way

    maps = yield Walk(batch.images, run)
    return difference(maps, risen, batch.images - start)
