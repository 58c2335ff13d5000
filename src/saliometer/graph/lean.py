"""A lean pass: a network's own logits, with fewer looks at memory on the way.

What follows a convolution (batch norm, a residual sum, a clamp) is one look at what it gave out; padding by zeros is
the convolution's own; 1x1 convolutions are matrix products; values go as soon as nobody reads them. Weights are read
where the network keeps them, so only its structure is remembered. Numbers are the network's but for rounding.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.fused import kernels
from saliometer.graph.capture import Graph, Ref, Step, UnfitError, capture
from saliometer.graph.families import argument, ceiling, family
from saliometer.graph.network import is_live

SIZES = 2, 3  # of the batches that it is captured with: numbers that differ grow with the batch
SMALL = 0.2  # the share of the products in ordinary convolutions up to which channels last is the faster layout
PLANS = 16  # batch sizes that are kept ready
MANY = 64  # with channels last batches of more than that are multiples of it
CLAMPS = ("relu", "relu6", "hardtanh", "clamp", "clamp_min")
SETTINGS = (3, "stride"), (5, "dilation"), (6, "groups")  # of a convolution, where they stand among its arguments


@dataclass(frozen=True, eq=False)
class Grown:
    """A number in a step's arguments that grows with the batch: base + each * images."""

    base: int
    each: int


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


@dataclass(frozen=True, eq=False)
class Norms:
    """Of all channels behind convolutions: what they are multiplied by and what is added, from the live weights."""

    parts: list[list[Tensor]]  # gamma, beta, mean, variance and the convolution's bias, for each convolution
    epsilon: Tensor

    def now(self) -> tuple[Tensor, Tensor]:
        gamma, beta, mean, variance, bias = (torch.cat(part).double() for part in self.parts)
        scale = gamma * (variance + self.epsilon).rsqrt()
        return scale.float(), (beta + (bias - mean) * scale).float()


class Lean:
    """Captured for images like this one, (1, C, H, W), in batches of any size; `UnfitError` where nothing is won."""

    def __init__(self, net: nn.Module, logits: Callable[[Tensor], Tensor], image: Tensor) -> None:
        held = (*net.parameters(), *net.buffers())
        if any(value.dtype != torch.float32 for value in held if value.is_floating_point()):
            raise UnfitError("a lean pass is for float32")
        graphs = [capture(net, logits, image.expand(size, *image.shape[1:])) for size in SIZES]
        if not all(is_live(graph, held) for graph in graphs):
            raise UnfitError(f"{type(net).__name__} computes weights in its forward")
        grown = [_grown(*steps) for steps in zip(*(graph.steps for graph in graphs), strict=True)]
        self.steps, self.norms = _joined(graphs[0], grown)
        self.layout = _layout(graphs[0])
        self._plans: dict[int, list[tuple[Step | Joined, list[int]]]] = {}  # with what nobody reads afterwards

    def __call__(self, images: Tensor) -> Tensor:
        scale, shift = self.norms.now()
        rows = self._filled_up(images)
        values: dict[int, Any] = {0: rows.contiguous(memory_format=self.layout)}
        for step, done in self._plan(len(rows)):
            if isinstance(step, Joined):
                values[step.number] = _run(step, values, scale[step.channels], shift[step.channels])
            else:
                values[step.number] = step(values)
            for number in done:
                del values[number]
        (logits,) = values.values()
        return logits[: len(images)]  # type: ignore[no-any-return]

    def _filled_up(self, images: Tensor) -> Tensor:
        """With channels last a GPU seems to take a second to get ready for a batch size: there are few."""
        if self.layout == torch.contiguous_format or len(images) <= MANY:  # few where memory is short
            return images
        short = -len(images) % MANY
        return torch.cat((images, images[-1:].expand(short, *images.shape[1:]))) if short else images

    def _plan(self, count: int) -> list[tuple[Step | Joined, list[int]]]:
        if count not in self._plans:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            steps = [step if isinstance(step, Joined) else _sized(step, count) for step in self.steps]
            last = {number: place for place, step in enumerate(steps) for number in step.inputs}
            ends: list[list[int]] = [[] for _ in steps]
            for number, place in last.items():
                ends[place].append(number)
            self._plans[count] = list(zip(steps, ends, strict=True))
        return self._plans[count]


def _run(step: Joined, values: dict[int, Any], scale: Tensor, shift: Tensor) -> Tensor:
    conv, given = step.conv, values[step.conv.inputs[0]]
    weight: Tensor = conv.args[1]
    stride, dilation, groups = (argument(conv, place, name, 1) for place, name in SETTINGS)
    if step.padding != (0, 0) or groups != 1 or weight.shape[2:] != (1, 1) or _pair(stride) != (1, 1):
        made = F.conv2d(given, weight, None, stride, step.padding, dilation, groups)
    elif given.is_contiguous(memory_format=torch.channels_last):
        rows = given.movedim(1, -1)
        made = (rows.flatten(0, 2) @ weight.flatten(1).t()).unflatten(0, rows.shape[:3]).movedim(-1, 1)
    else:
        made = (weight.flatten(1) @ given.flatten(2)).unflatten(2, given.shape[2:])
    added = None if step.added is None else values[step.added]
    return finished(made, scale, shift, added, step.low, step.high)


def finished(made: Tensor, scale: Tensor, shift: Tensor, added: Tensor | None, low: float, high: float) -> Tensor:
    """What a convolution gave out, scaled and shifted, added to, and clamped; in its own memory."""
    given = (made, scale, shift) if added is None else (made, scale, shift, added)
    quick = kernels(*given)
    dense = made.is_contiguous() or made.is_contiguous(memory_format=torch.channels_last)
    if quick and dense and (added is None or added.stride() == made.stride()):
        return quick.finished(made, scale, shift, added, low, high)  # type: ignore[no-any-return]
    made.mul_(scale.view(-1, 1, 1)).add_(shift.view(-1, 1, 1))
    if added is not None:
        made.add_(added)
    return made.clamp_(low, high)


# From two captures to one


def _grown(one: Step, other: Step) -> Step:
    if one.op != other.op:
        raise UnfitError(f"{one} is {other} in larger batches")
    return replace(one, args=_compared(one.args, other.args), kwargs=_compared(one.kwargs, other.kwargs))


def _compared(one: Any, other: Any) -> Any:
    """Nested arguments, with numbers that grow where they differ."""
    if type(one) is not type(other):
        raise UnfitError("other arguments in larger batches")
    if isinstance(one, Tensor):
        if one.shape != other.shape or one.data_ptr() != other.data_ptr() or one.stride() != other.stride():
            raise UnfitError("a constant that differs in larger batches")
        return one
    if type(one) in (tuple, list) and len(one) == len(other):
        return type(one)([_compared(a, b) for a, b in zip(one, other, strict=True)])
    if type(one) is dict and one.keys() == other.keys():
        return {name: _compared(value, other[name]) for name, value in one.items()}
    if one == other:
        return one
    if type(one) is not int:
        raise UnfitError(f"{one} is {other} in larger batches")
    each = other - one
    return Grown(one - SIZES[0] * each, each)


def _sized(step: Step, count: int) -> Step:
    if not any(isinstance(leaf, Grown) for leaf in _leaves((step.args, step.kwargs))):
        return step
    return replace(step, args=_filled(step.args, count), kwargs=_filled(step.kwargs, count))


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, list, dict):
        for one in value.values() if type(value) is dict else value:
            yield from _leaves(one)
    else:
        yield value


def _filled(value: Any, count: int) -> Any:
    if isinstance(value, Grown):
        return value.base + value.each * count
    if type(value) in (tuple, list):
        return type(value)([_filled(one, count) for one in value])
    return {name: _filled(one, count) for name, one in value.items()} if type(value) is dict else value


# From steps to joined ones


def _joined(graph: Graph, grown: list[Step]) -> tuple[list[Step | Joined], Norms]:
    """The steps that are left, and the norms that went into them."""
    gone, ends = set[int](), dict[int, Joined]()
    vectors: list[list[Tensor]] = []
    epsilons: list[float] = []
    start = 0
    for conv in graph.steps:
        if not _is_conv(conv):
            continue
        chain = _chain(graph, conv, gone | ends.keys())
        if len(chain) == 1 and argument(conv, 2, "bias") is None:
            continue  # nothing follows that could be joined
        norm = next((step for step in chain if family(graph, step) == "norm"), None)
        pad = _pad_before(graph, conv)
        count = len(conv.args[1])
        ends[chain[-1].number] = _end(graph, conv, chain, pad, slice(start, start + count))
        gone |= {step.number for step in (*chain[:-1], *([pad] if pad else []))}
        start += count
        vectors.append(_vectors(conv, norm))
        epsilons += [0.0 if norm is None else float(argument(norm, 7, "eps"))] * count
    if not ends:
        raise UnfitError("no convolution has anything behind it that could be joined to it")
    left = [ends.get(step.number, step) for step in grown[1:] if step.number not in gone]
    parts = [list(part) for part in zip(*vectors, strict=True)]
    return left, Norms(parts, torch.tensor(epsilons, dtype=torch.float64, device=parts[0][0].device))


def _is_conv(step: Step) -> bool:
    """A convolution with weights of its own and a padding in numbers."""
    named = isinstance(argument(step, 4, "padding", 0), str)
    return step.op == "conv2d" and isinstance(step.args[0], Ref) and len(step.inputs) == 1 and not named


def _chain(graph: Graph, conv: Step, taken: set[int]) -> list[Step]:
    """A convolution, and behind it at most a norm, a sum with another step and a clamp, if none else reads them."""
    chain, kinds = [conv], list[str]()
    while len(graph.consumers[chain[-1].number]) == 1:
        step = graph.steps[graph.consumers[chain[-1].number][0]]
        kind = _kind(graph, step, conv)
        if step.number in taken or not kind or (kinds and kinds[-1] >= kind):
            break
        chain.append(step)
        kinds.append(kind)
    return chain


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


def _end(graph: Graph, conv: Step, chain: list[Step], pad: Step | None, channels: slice) -> Joined:
    padding = _pair(argument(conv, 4, "padding", 0))
    if pad is not None:
        padding = padding[0] + pad.args[1][2], padding[1] + pad.args[1][0]
        conv = replace(conv, args=(pad.args[0], *conv.args[1:]))
    found = Joined(chain[-1].number, conv, padding, channels)
    for before, step in pairwise(chain):
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


def _layout(graph: Graph) -> torch.memory_format:
    """Channels last where the products are nearly all in 1x1 and depthwise convolutions."""
    total = ordinary = deep = 0
    for step in filter(_is_conv, graph.steps):
        weight: Tensor = step.args[1]
        products = torch.Size(step.shape[1:]).numel() * weight[0].numel()
        total += products
        if weight.shape[2:] != (1, 1):
            alone = weight.shape[1] == 1 < len(weight)
            deep += products * alone
            ordinary += products * (not alone)
    return torch.channels_last if deep and ordinary <= SMALL * total else torch.contiguous_format
