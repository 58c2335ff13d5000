"""Folding: a batch norm right behind a convolution or linear layer becomes part of its weights."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from saliometer.graph.capture import Graph, Ref, Step, once
from saliometer.graph.families import family


@once
def folded(graph: Graph) -> Graph:
    """The same function without the batch norms that can be folded; the user's modules are left alone."""
    steps = list(graph.steps)
    for step in graph.steps:
        if not (step.args and isinstance(step.args[0], Ref)):
            continue
        before = steps[step.args[0].number]
        if step.op == "neg" and _takes(before):
            steps[step.number] = _opposite(before, step)
        if family(graph, step) != "norm":
            continue
        if not _takes(before) or graph.consumers[before.number] != [step.number]:
            continue
        steps[before.number] = _joined(before, step)
        steps[step.number] = Step(step.number, "identity", step.place, _identity, (step.args[0],))
    return Graph(tuple(steps), graph.layers, {name: graph.facts.get(name) for name in ("state", "bent")})


def _identity(value: Tensor) -> Tensor:
    return value


def _takes(step: Step) -> bool:
    """Whether a step has weights with one row for each output channel."""
    rows = step.op in ("conv1d", "conv2d", "conv3d") or (step.op == "linear" and len(step.shape) == 2)
    return rows and isinstance(step.args[1], Tensor)


def _opposite(kernel: Step, neg: Step) -> Step:
    """A kernel's output with the other sign as a kernel of its own: what spoke against it speaks for it there."""
    bias = kernel.args[2] if len(kernel.args) > 2 else kernel.kwargs.get("bias")
    kwargs = {name: value for name, value in kernel.kwargs.items() if name != "bias"}
    args = (kernel.args[0], -kernel.args[1], None if bias is None else -bias, *kernel.args[3:])
    return replace(kernel, number=neg.number, args=args, kwargs=kwargs)


def _joined(kernel: Step, norm: Step) -> Step:
    weight, bias = kernel.args[1], kernel.args[2] if len(kernel.args) > 2 else kernel.kwargs.get("bias")
    scale, shift = scale_and_shift(norm)
    new_weight = (weight.double() * scale.view(-1, *[1] * (weight.ndim - 1))).to(weight)
    new_bias = (shift if bias is None else bias.double() * scale + shift).to(weight)
    rest = kernel.args[3:]
    kwargs = {name: value for name, value in kernel.kwargs.items() if name != "bias"}
    return replace(kernel, args=(kernel.args[0], new_weight, new_bias, *rest), kwargs=kwargs)


def scale_and_shift(norm: Step) -> tuple[Tensor, Tensor]:
    """(channels,) float64: y = scale x + shift."""
    gamma, beta, mean, variance = (_double(value) for value in norm.args[1:5])
    epsilon: Any = norm.args[7] if len(norm.args) > 7 else norm.kwargs.get("eps", 1e-5)
    assert mean is not None
    assert variance is not None
    scale = (variance + epsilon).rsqrt()
    scale = scale if gamma is None else scale * gamma
    return scale, (-mean * scale if beta is None else beta - mean * scale)


def _double(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.to(torch.float64)
