"""Joins a convolution with what follows it: a batch norm, a residual sum, a clamp, and zeros padded before it."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import torch
from torch import Tensor

from saliometer.fused.onednn import Geometry
from saliometer.graph.capture import Graph, Ref, Step, UnfitError
from saliometer.graph.families import argument, ceiling, family

CLAMPS = ("relu", "relu6", "hardtanh", "clamp", "clamp_min")
SETTINGS = (3, "stride"), (5, "dilation"), (6, "groups")  # of a convolution, where they stand among its arguments


@dataclass(frozen=True, eq=False)
class Joined:
    """A convolution and what follows it, up to the step whose value it gives."""

    number: int
    conv: Step
    padding: tuple[int, int]
    channels: slice  # of the scales and shifts of all
    added: int | None = None  # the step whose value is added before the clamp
    low: float = float("-inf")
    high: float = float("inf")

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.conv.inputs if self.added is None else (*self.conv.inputs, self.added)

    @property
    def weight(self) -> Tensor:
        return self.conv.args[1]  # type: ignore[no-any-return]

    @cached_property
    def geometry(self) -> Geometry:
        stride, dilation = (
            _pair(argument(self.conv, place, name, 1)) for place, name in ((3, "stride"), (5, "dilation"))
        )
        return Geometry(self.padding, stride, dilation, argument(self.conv, 6, "groups", 1))


@dataclass(frozen=True, eq=False)
class Norms:
    """Of all channels behind convolutions: what they are multiplied by and what is added, from the live weights."""

    parts: list[list[Tensor]]  # gamma, beta, mean, variance and the convolution's bias, for each convolution
    epsilon: Tensor
    weights: list[Tensor]  # of the convolutions

    @cached_property
    def read(self) -> list[Tensor]:
        """All tensors that what comes out depends on."""
        return [*self.weights, *chain.from_iterable(self.parts)]

    def now(self) -> tuple[Tensor, Tensor]:
        gamma, beta, mean, variance, bias = (torch.cat(part).double() for part in self.parts)
        scale = gamma * (variance + self.epsilon).rsqrt()
        return scale.float(), (beta + (bias - mean) * scale).float()


def joined(graph: Graph, grown: list[Step]) -> tuple[list[Step | Joined], Norms]:
    """The steps that are left, and the norms that went into them."""
    gone, ends = set[int](), dict[int, Joined]()
    vectors: list[list[Tensor]] = []
    epsilons: list[float] = []
    start = 0
    for conv in graph.steps:
        if not is_conv(conv):
            continue
        found = _chain(graph, conv, gone | ends.keys())
        if len(found) == 1 and argument(conv, 2, "bias") is None:
            continue  # nothing follows that could be joined
        norm = next((step for step in found if family(graph, step) == "norm"), None)
        pad = _pad_before(graph, conv)
        count = len(conv.args[1])
        ends[found[-1].number] = _end(graph, conv, found, pad, slice(start, start + count))
        gone |= {step.number for step in (*found[:-1], *([pad] if pad else []))}
        start += count
        vectors.append(_vectors(conv, norm))
        epsilons += [0.0 if norm is None else float(argument(norm, 7, "eps"))] * count
    if not ends:
        raise UnfitError("no convolution has anything behind it that could be joined to it")
    left = [ends.get(step.number, step) for step in grown[1:] if step.number not in gone]
    parts = [list(part) for part in zip(*vectors, strict=True)]
    epsilon = torch.tensor(epsilons, dtype=torch.float64, device=parts[0][0].device)
    return left, Norms(parts, epsilon, [one.weight for one in ends.values()])


def is_conv(step: Step) -> bool:
    """A convolution with weights of its own and a padding in numbers."""
    named = isinstance(argument(step, 4, "padding", 0), str)
    return step.op == "conv2d" and isinstance(step.args[0], Ref) and len(step.inputs) == 1 and not named


def _chain(graph: Graph, conv: Step, taken: set[int]) -> list[Step]:
    """A convolution, and behind it at most a norm, a sum with another step and a clamp, if none else reads them."""
    found, kinds = [conv], list[str]()
    while len(graph.consumers[found[-1].number]) == 1:
        step = graph.steps[graph.consumers[found[-1].number][0]]
        kind = _kind(graph, step, conv)
        if step.number in taken or not kind or (kinds and kinds[-1] >= kind):
            break
        found.append(step)
        kinds.append(kind)
    return found


def _kind(graph: Graph, step: Step, conv: Step) -> str:
    """How a step can be joined to a convolution; in the order of the alphabet, each once."""
    kind = family(graph, step)
    if kind == "norm":
        return "a norm" if step.op == "batch_norm" and len(step.inputs) == 1 else ""
    both = step.op == "add" and len(step.inputs) == 2 and not step.kwargs
    if both and all(graph.steps[number].shape == conv.shape for number in step.inputs):
        return "a sum"
    numbers = not any(isinstance(value, Tensor) for value in (*step.args, *step.kwargs.values()))
    return "clamp" if kind in ("relu", "relu_capped") and step.op in CLAMPS and numbers else ""


def _pad_before(graph: Graph, conv: Step) -> Step | None:
    """Zeros around what only this convolution reads, the same number on opposite sides."""
    pad = graph.steps[conv.inputs[0]]
    if pad.op not in ("pad", "constant_pad_nd") or graph.consumers[pad.number] != [conv.number]:
        return None
    sides = pad.args[1]
    usual = len(pad.args) < 3 or (pad.args[2] in ("constant", 0) and not any(pad.args[3:]))
    even = len(sides) == 4 and sides[0] == sides[1] >= 0 and sides[2] == sides[3] >= 0
    return pad if usual and even else None


def _end(graph: Graph, conv: Step, steps: list[Step], pad: Step | None, channels: slice) -> Joined:
    padding = _pair(argument(conv, 4, "padding", 0))
    if pad is not None:
        padding = padding[0] + pad.args[1][2], padding[1] + pad.args[1][0]
        conv = replace(conv, args=(pad.args[0], *conv.args[1:]))
    found = Joined(steps[-1].number, conv, padding, channels)
    for before, step in pairwise(steps):
        kind = _kind(graph, step, conv)
        if kind == "a sum":
            (other,) = (number for number in step.inputs if number != before.number)
            found = replace(found, added=other)
        elif kind == "clamp":
            found = replace(found, low=0.0, high=ceiling(step))
    return found


def _vectors(conv: Step, norm: Step | None) -> list[Tensor]:
    """(channels,) each: gamma, beta, mean and variance of a norm, and the convolution's bias."""
    given = (None,) * 4 if norm is None else norm.args[1:5]
    weight: Tensor = conv.args[1]
    usual = (1.0, 0.0, 0.0, 1.0, 0.0)  # a norm that changes nothing
    return [
        weight.new_full((len(weight),), value) if vector is None else vector
        for value, vector in zip(usual, (*given, argument(conv, 2, "bias")), strict=True)
    ]


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, int):
        return value, value
    return (value[0], value[-1])
