"""Folding: a batch norm, or constants that do what it does, becomes part of the kernel right before it."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from saliometer.graph.capture import Graph, Ref, Step, once
from saliometer.graph.families import KERNELS, argument, family


@once
def folded(graph: Graph) -> Graph:
    """The same function without the batch norms that can be folded, or constants that do what they do.

    The user's modules are left alone.
    """
    steps = list(graph.steps)
    for step in graph.steps:
        if len(step.inputs) != 1:
            continue
        before = steps[step.inputs[0]]
        if step.op == "neg" and _takes(before):
            steps[step.number] = _opposite(before, step)
            continue
        kernel = _kernel_before(graph, steps, step)
        factors = None if kernel is None else _factors(graph, kernel, step)
        if kernel is None or factors is None:
            continue
        steps[kernel.number] = _joined(kernel, *factors)
        steps[step.number] = Step(step.number, "identity", step.place, _identity, (Ref(step.inputs[0]),))
    return Graph(tuple(steps), graph.layers, {name: graph.facts.get(name) for name in ("state", "bent")})


def _identity(value: Tensor) -> Tensor:
    return value


def _takes(step: Step) -> bool:
    """Whether a step has constant weights, some for each output channel."""
    shaped = step.op in KERNELS and (step.op != "linear" or len(step.shape) == 2)
    return shaped and isinstance(step.args[0], Ref) and isinstance(step.args[1], Tensor)


def _kernel_before(graph: Graph, steps: list[Step], step: Step) -> Step | None:
    """The kernel that only this step reads, maybe behind others that were folded into it; None if there is none."""
    reader, number = step.number, step.inputs[0]
    while graph.consumers[number] == [reader]:
        before = steps[number]
        if before.op != "identity":
            return before if _takes(before) else None
        reader, number = number, before.inputs[0]
    return None


def _factors(graph: Graph, kernel: Step, step: Step) -> tuple[Tensor, Tensor] | None:
    """(channels,) float64: what each channel is multiplied by, and what is added; None if not all places are alike."""
    kind = family(graph, step)
    if kind == "norm":
        return scale_and_shift(step)
    if kind not in ("scale", "shift"):
        return None
    ones = kernel.args[1].new_ones((1, kernel.shape[1], *[1] * (len(kernel.shape) - 2)), dtype=torch.float64)
    shift, total = (step({step.inputs[0]: values}) for values in (torch.zeros_like(ones), ones))
    return ((total - shift).flatten(), shift.flatten()) if shift.shape == ones.shape else None


def _opposite(kernel: Step, neg: Step) -> Step:
    """A kernel's output with the other sign as a kernel of its own: what spoke against it speaks for it there."""
    bias = argument(kernel, 2, "bias")
    kwargs = {name: value for name, value in kernel.kwargs.items() if name != "bias"}
    args = (kernel.args[0], -kernel.args[1], None if bias is None else -bias, *kernel.args[3:])
    return replace(kernel, number=neg.number, args=args, kwargs=kwargs)


def _joined(kernel: Step, scale: Tensor, shift: Tensor) -> Step:
    weight, bias = kernel.args[1], argument(kernel, 2, "bias")
    new_weight = _scaled(kernel, scale).to(weight)
    new_bias = (shift if bias is None else bias.double() * scale + shift).to(weight)
    rest = kernel.args[3:]
    kwargs = {name: value for name, value in kernel.kwargs.items() if name != "bias"}
    return replace(kernel, args=(kernel.args[0], new_weight, new_bias, *rest), kwargs=kwargs)


def _scaled(kernel: Step, scale: Tensor) -> Tensor:
    """Float64: a kernel's weights times one factor for each output channel, of which transposed ones have groups."""
    weight: Tensor = kernel.args[1].double()
    around = [1] * (weight.ndim - 2)
    general = kernel.op == "convolution"  # which says of itself whether it is transposed
    if not (argument(kernel, 6, "transposed") if general else kernel.op.startswith("conv_transpose")):
        return weight * scale.view(-1, 1, *around)
    groups: int = argument(kernel, 8 if general else 6, "groups", 1)
    parts: Tensor = weight.unflatten(0, (groups, -1)) * scale.view(groups, 1, -1, *around)
    return parts.flatten(0, 1)


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
