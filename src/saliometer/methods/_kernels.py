"""Convolutions and linear layers taken apart: with other weights, without bias."""

from typing import Any

from torch import Tensor

from saliometer.graph import Here, Step, kernel_places


def applied(step: Step, activations: Tensor, weights: Tensor) -> Tensor:
    """A kernel on other activations, with other weights and no bias."""
    places = kernel_places(step)
    assert places is not None
    args: list[Any] = list(step.args)
    args[places[0]], args[places[1]] = activations, weights
    if places[2] is not None and len(args) > places[2]:
        args[places[2]] = None if step.op != "addmm" else activations.new_zeros(())
    kwargs = {name: value for name, value in step.kwargs.items() if name != "bias"}
    result: Tensor = step.call(*args, **kwargs)
    return result


def weights_of(step: Step) -> Tensor:
    places = kernel_places(step)
    assert places is not None
    weights: Tensor = step.args[places[1]]
    return weights


def bias_of(here: Here) -> Tensor:
    """A kernel's bias, in a shape that fits its output; 0 where it has none."""
    step, places = here.step, kernel_places(here.step)
    assert places is not None
    bias = step.kwargs.get("bias")
    if places[2] is not None and len(step.args) > places[2]:
        bias = step.args[places[2]]
    if bias is None:
        return here.output.new_zeros(())
    if step.op == "addmm":
        bias = step.kwargs.get("beta", 1) * bias
    convolution = step.op.startswith("conv")
    return bias.view(-1, *[1] * (here.output.ndim - 2)) if convolution else bias  # type: ignore[no-any-return]
