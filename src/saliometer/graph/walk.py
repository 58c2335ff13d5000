"""The backward walk: a signal runs from the target's logit to the images, by a rule for each family of operations."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from saliometer.graph.capture import Graph, Step
from saliometer.graph.families import affine, family, gate_of

Signals = Sequence[Tensor | None]
Rule = Callable[["Here", Any], Signals]
Rules = Mapping[str, Rule]  # family -> rule; 'affine' is for operations that are found to be affine


class RefusedError(ValueError):
    """An operation has no rule for a method; says which, and where."""


class Pass:
    """One forward pass over a graph, each step cut off from the one before, so that a signal can be sent back over it."""

    def __init__(self, graph: Graph, images: Tensor, *, slopes: bool = True, keep: bool = False) -> None:
        self.graph, self.keep = graph, keep  # `keep`: signals can be sent back more than once
        self.values: dict[int, Any] = {0: images.detach()}
        self._leaves: dict[int, dict[int, Any]] = {}
        self._outputs: dict[int, Any] = {}
        with torch.inference_mode(False), torch.set_grad_enabled(slopes):
            for step in graph.steps[1:]:
                leaves = {number: _leaf(self.values[number], slopes) for number in step.inputs}
                output = step(leaves)
                if slopes:
                    self._leaves[step.number], self._outputs[step.number] = leaves, output
                self.values[step.number] = _detached(output)

    @property
    def logits(self) -> Tensor:
        logits: Tensor = self.values[self.graph.output]
        return logits

    def back(self, number: int, signal: Any) -> list[Tensor | None]:
        """The true derivative: a signal at a step's output, sent to its inputs."""
        leaves, output = self._leaves[number], self._outputs[number]
        if isinstance(output, tuple | list):
            pairs = [(o, s) for o, s in zip(output, signal, strict=True) if s is not None and o.requires_grad]
            outputs, signals = [o for o, _ in pairs], [s for _, s in pairs]
        else:
            outputs, signals = [output], [signal]
        wanted = [leaf for leaf in leaves.values() if isinstance(leaf, Tensor) and leaf.requires_grad]
        if not wanted or not outputs or not outputs[0].requires_grad:
            return [None] * len(leaves)
        found = iter(torch.autograd.grad(outputs, wanted, signals, retain_graph=self.keep, allow_unused=True))
        return [next(found) if isinstance(leaf, Tensor) and leaf.requires_grad else None for leaf in leaves.values()]


def _leaf(value: Any, slopes: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_leaf(one, slopes) for one in value)
    return value.detach().requires_grad_(slopes and value.is_floating_point()) if isinstance(value, Tensor) else value


def _detached(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_detached(one) for one in value)
    return value.detach() if isinstance(value, Tensor) else value


class Here:
    """A step on the walk, with what went in and came out."""

    def __init__(self, forward: Pass, step: Step, reference: Pass | None = None) -> None:
        self.forward, self.step, self.reference = forward, step, reference

    @cached_property
    def inputs(self) -> list[Any]:
        return [self.forward.values[number] for number in self.step.inputs]

    @property
    def output(self) -> Tensor:
        output: Tensor = self.forward.values[self.step.number]
        return output

    def back(self, signal: Any) -> Signals:
        return self.forward.back(self.step.number, signal)


def transpose(here: Here, signal: Any) -> Signals:
    """The ordinary derivative, right for whatever is linear."""
    return here.back(signal)


def walk(forward: Pass, start: Tensor, rules: Rules, reference: Pass | None = None) -> Tensor:
    """The signal that reaches the images when `start` is put on the logits."""
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
        for number, sent in zip(step.inputs, _rule(graph, step, rules, here)(here, signal), strict=True):
            if sent is not None:
                signals[number] = sent if number not in signals else signals[number] + sent
    reached = signals.get(0)
    if reached is None:
        raise ValueError("no signal reaches the images from the logits")
    return reached  # type: ignore[no-any-return]


def _add_item(signals: dict[int, Any], step: Step, signal: Tensor, count: int) -> None:
    """What goes back to one part of a split waits for the other parts."""
    parts = signals.setdefault(step.inputs[0], [None] * count)
    place = int(step.args[1])
    parts[place] = signal if parts[place] is None else parts[place] + signal


def _rule(graph: Graph, step: Step, rules: Rules, here: Here) -> Rule:
    kind = family(graph, step)
    if kind in rules:
        return rules[kind]
    if not kind and "affine" in rules and affine(step, dict(zip(step.inputs, here.inputs, strict=True))):
        return rules["affine"]
    raise RefusedError(f"there is no rule for the operation {step}")


def refusal(graph: Graph, rules: Rules) -> Step | None:
    """The first operation on the way back that has no rule, without running anything; None if all have one."""
    reached = {graph.output}
    for step in reversed(graph.steps[1:]):
        if step.number not in reached:
            continue
        kind = family(graph, step)
        if kind and kind not in rules:
            return step
        inputs = set(step.inputs)
        if kind == "gated" and "gate" not in rules:  # the gate itself gets nothing
            inputs -= {gate_of(graph, step)}
        reached |= inputs
    return None
