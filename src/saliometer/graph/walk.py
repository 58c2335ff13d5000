"""The backward walk: a signal runs from the target's logit to the images, by a rule for each family of operations."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import grad

from saliometer.graph.capture import Graph, Step, UnfitError
from saliometer.graph.families import LINEAR, affine, family, gate_of, is_mask

CONVOLUTIONS: dict[str, Any] = {
    "conv1d": grad.conv1d_input,
    "conv2d": grad.conv2d_input,
    "conv3d": grad.conv3d_input,
}
Signals = Sequence[Any]  # tensors, or what a method has instead; None where nothing is sent
Rule = Callable[["Here", Any], Signals]
Rules = Mapping[str, Rule]  # family -> rule; 'affine' is for operations that are found to be affine


class RefusedError(UnfitError):
    """An operation has no rule for a method; says which, and where."""


class Pass:
    """A forward pass over a graph, each step cut off from the one before, so that signals can be sent back over it."""

    def __init__(
        self,
        graph: Graph,
        images: Tensor,
        *,
        slopes: bool = True,
        keep: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.graph, self.keep = graph, keep  # `keep`: signals can be sent back more than once
        self.check = check  # raises if the graph is not to be believed; asked once a walk is done
        self._done: dict[int, Done] = {}
        with torch.inference_mode(False), torch.set_grad_enabled(slopes):
            start = images.clone() if images.is_inference() else images
            self.values: dict[int, Any] = {0: _leaf(start, slopes)}
            for step in graph.steps[1:]:
                done = Done(step, self.values)
                if slopes:
                    self._done[step.number] = done
                self.values[step.number] = _leaf(done.output, slopes)

    @property
    def logits(self) -> Tensor:
        logits: Tensor = self.values[self.graph.output]
        return logits.detach()

    def apart(self, number: int, groups: int) -> Tensor:
        """(groups or 1, images, ...): a step's values, rows of which so many groups follow each other."""
        values: Tensor = self.values[number]
        return values.view(groups, -1, *values.shape[1:])

    def back(self, number: int, signal: Any) -> list[Tensor | None]:
        """The true derivative: a signal at a step's output, sent to its inputs."""
        return self._done[number].back(signal, self.keep)


class Done:
    """A step that was run on leaves of autograd, so that a signal goes back to these and no further."""

    def __init__(self, step: Step, leaves: Mapping[int, Any]) -> None:
        self.leaves = {number: leaves[number] for number in step.inputs}
        self.output = step(self.leaves)

    def back(self, signal: Any, keep: bool = False) -> list[Tensor | None]:
        if isinstance(self.output, tuple | list):
            pairs = [(o, s) for o, s in zip(self.output, signal, strict=True) if s is not None and o.requires_grad]
        else:
            pairs = [(self.output, signal)] if self.output.requires_grad else []
        wanted = {n: leaf for n, leaf in self.leaves.items() if isinstance(leaf, Tensor) and leaf.requires_grad}
        if not wanted or not pairs:
            return [None] * len(self.leaves)
        outputs, signals = zip(*pairs, strict=True)
        slopes = torch.autograd.grad(outputs, tuple(wanted.values()), signals, retain_graph=keep, allow_unused=True)
        found = dict(zip(wanted, slopes, strict=True))
        return [found.get(number) for number in self.leaves]


def _leaf(value: Any, slopes: bool = True) -> Any:
    """The same values without what they were made of; with `slopes`, autograd follows them from here."""
    if isinstance(value, tuple | list):
        return tuple(_leaf(one, slopes) for one in value)
    return value.detach().requires_grad_(slopes and value.is_floating_point()) if isinstance(value, Tensor) else value


class Repeated:
    """A pass as if it had been made on some copies of its images, one after the other; nothing runs or lies twice.

    `graph` has the same steps for so many images.
    """

    def __init__(self, forward: Pass, graph: Graph, copies: int) -> None:
        self.graph, self.copies, self.check = graph, copies, forward.check
        images = torch.arange(len(forward.values[0]), device=forward.logits.device)
        self.values = _Rows(forward, images.repeat(copies))

    def apart(self, number: int, groups: int) -> Tensor:
        assert groups == self.copies, "a group is a copy of the images"
        values: Tensor = self.values.once(number)
        return values[None]

    def back(self, number: int, signal: Any) -> list[Tensor | None]:
        """The true derivative; of what is linear it is the same whatever its inputs are, so that nothing is copied."""
        step = self.graph.steps[number]
        if step.op in CONVOLUTIONS and not step.kwargs and not any(isinstance(value, str) for value in step.args):
            return [CONVOLUTIONS[step.op](self._shape(step.inputs[0]), step.args[1], signal, *step.args[3:])]
        values = self._like if family(self.graph, step) in LINEAR else self.values.__getitem__
        with torch.inference_mode(False), torch.enable_grad():
            done = Done(step, {place: _leaf(values(place)) for place in step.inputs})
        return done.back(signal)

    def _like(self, number: int) -> Tensor:
        """Values of the right shape, without memory of their own."""
        values: Tensor = self.values.forward.values[number]
        return values.new_zeros(()).expand(self._shape(number))

    def _shape(self, number: int) -> tuple[int, ...]:
        shape = self.values.forward.values[number].shape
        return self.graph.steps[number].shape or (self.copies * shape[0], *shape[1:])


class Chosen:
    """A pass over references as if it had been made on these rows, each for that many images; or on all as they are."""

    def __init__(self, forward: Pass, rows: Tensor | None = None, images: int = 1) -> None:
        self.forward, self.rows, self.images = forward, rows, images
        self.values = forward.values if rows is None else _Rows(forward, rows.repeat_interleave(images))

    @property
    def logits(self) -> Tensor:
        logits: Tensor = self.values[self.forward.graph.output]
        return logits

    def beside(self, number: int, forward: Pass | Repeated) -> tuple[Tensor, Tensor]:
        """A step's values and what the references have there, in shapes that fit each other without copies."""
        if self.rows is None:
            return forward.values[number], self.values[number]
        return forward.apart(number, len(self.rows)), _Rows(self.forward, self.rows)[number][:, None]

    def back(self, number: int, signal: Any) -> list[Tensor | None]:
        step = self.forward.graph.steps[number]
        with torch.inference_mode(False), torch.enable_grad():
            done = Done(step, {place: _leaf(self.values[place]) for place in step.inputs})
        return done.back(signal)


class _Rows(dict[int, Any]):
    """Values of a pass in other rows; made anew whenever they are read."""

    def __init__(self, forward: Pass, rows: Tensor) -> None:
        self.forward, self.rows = forward, rows

    def once(self, number: int) -> Any:
        """In the rows of the pass itself."""
        value, count = self.forward.values[number], len(self.forward.values[0])
        parts = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(part, Tensor) and len(part) == count for part in parts):
            raise RefusedError(f"images do not stay apart in the operation {self.forward.graph.steps[number]}")
        return value

    def __missing__(self, number: int) -> Any:
        value = self.once(number)
        return tuple(map(self._chosen, value)) if isinstance(value, tuple) else self._chosen(value)

    def _chosen(self, value: Tensor) -> Tensor:
        return value[self.rows] if len(value) > 1 else value.expand(len(self.rows), *value.shape[1:])


class Here:
    """A step on the walk, with what went in and came out; `reference` is the pass it is compared with, if any."""

    def __init__(self, forward: Pass | Repeated, step: Step, reference: Chosen | None = None) -> None:
        self.forward, self.step, self._reference = forward, step, reference

    @property
    def graph(self) -> Graph:
        return self.forward.graph

    @property
    def reference(self) -> Chosen:
        assert self._reference is not None, "this walk compares with nothing"
        return self._reference

    @cached_property
    def inputs(self) -> list[Any]:
        return [self.forward.values[number] for number in self.step.inputs]

    @property
    def output(self) -> Tensor:
        output: Tensor = self.forward.values[self.step.number]
        return output

    def change(self, number: int) -> Tensor:
        """How far a step's result is from that of the reference."""
        value, expected = self.reference.beside(number, self.forward)
        return value - expected if self.reference.rows is None else (value - expected).flatten(0, 1)

    def back(self, signal: Any) -> Signals:
        return self.forward.back(self.step.number, signal)

    @cached_property
    def main(self) -> int:
        """Which of the inputs is the activation: `where(x > 0, x, 0)` reads x and a condition."""
        return next(place for place, number in enumerate(self.step.inputs) if not is_mask(self.graph, number))

    def only(self, signal: Any, place: int | None = None) -> Signals:
        """A signal for one input and none for the others."""
        chosen = self.main if place is None else place
        return [signal if number == chosen else None for number in range(len(self.step.inputs))]


def transpose(here: Here, signal: Any) -> Signals:
    """The ordinary derivative, right for whatever is linear."""
    return here.back(signal)


def walk(forward: Pass | Repeated, start: Any, rules: Rules, reference: Chosen | None = None) -> Any:
    """The signal that reaches the images when `start` is put on the logits."""
    with torch.no_grad():
        reached = _reached(forward, start, rules, reference)
    if reached is None:
        raise ValueError("no signal reaches the images from the logits")
    forward.check()
    return reached


def _reached(forward: Pass | Repeated, start: Any, rules: Rules, reference: Chosen | None) -> Any:
    graph = forward.graph
    signals: dict[int, Any] = {graph.output: start}
    for step in reversed(graph.steps[1:]):
        signal = signals.pop(step.number, None)
        if signal is None:
            continue
        here = Here(forward, step, reference)
        if step.op == "getitem":
            _add_item(signals, step, signal, len(here.inputs[0]))
            continue
        back = [signal] if step.op == "identity" else _rule(graph, step, rules, here)(here, signal)
        if all(sent is None for sent in back):
            raise RefusedError(f"nothing can be sent back through the operation {step}")
        for number, sent in zip(step.inputs, back, strict=True):
            if sent is not None:
                signals[number] = sent if number not in signals else signals[number] + sent
    return signals.get(0)


def _add_item(signals: dict[int, Any], step: Step, signal: Tensor, count: int) -> None:
    """What goes back to one part of a split waits for the other parts."""
    parts = signals.setdefault(step.inputs[0], [None] * count)
    place = int(step.args[1])
    parts[place] = signal if parts[place] is None else parts[place] + signal


def _rule(graph: Graph, step: Step, rules: Rules, here: Here) -> Rule:
    kind = family(graph, step)
    if kind in rules:
        return rules[kind]
    straight = "affine" in rules and not kind and step.number not in graph.facts["bent"]
    if straight and affine(step, dict(zip(step.inputs, here.inputs, strict=True))):
        return rules["affine"]
    raise RefusedError(f"there is no rule for the operation {step}")


def refusal(graph: Graph, rules: Rules) -> Step | None:
    """The first operation on the way back that has no rule, without running anything; None if all have one."""
    reached = {graph.output}
    for step in reversed(graph.steps[1:]):
        if step.number not in reached:
            continue
        kind = family(graph, step)
        if kind not in rules:  # also one that might turn out to be affine
            return step
        inputs = {number for number in step.inputs if kind != "relu" or not is_mask(graph, number)}
        if kind == "gated" and "gate" not in rules:  # the gate itself gets nothing
            inputs -= {gate_of(graph, step)}
        reached |= inputs
    return None
