"""Families: what kind of operation a step is, so that a rule is written once for all spellings."""

from typing import Any

import torch
from torch import Tensor

from saliometer.graph.capture import Graph, Ref, Step, once

KERNELS = {"linear", "conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d"}  # fmt: skip
MATMULS = {"matmul", "mm", "bmm", "addmm", "einsum"}
AVERAGES = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
            "adaptive_avg_pool3d", "mean", "sum", "upsample_nearest2d", "upsample_bilinear2d",
            "_upsample_nearest_exact2d"}  # fmt: skip
MAXIMA = {"max_pool1d", "max_pool2d", "max_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
          "adaptive_max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
          "amax"}  # fmt: skip
FROM_ZERO = {"leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "tanh", "hardswish", "prelu",
             "hardshrink", "softshrink"}  # fmt: skip
GATES = {"sigmoid", "hardsigmoid"}
ELEMENTWISE = {"softplus", "log_sigmoid", "abs"}  # neither 0 at 0 and rising, nor gates
ROUTES = {
    "cat", "concat", "stack", "split", "split_with_sizes", "chunk", "unbind", "tensor_split", "getitem", "slice",
    "select", "narrow", "flatten", "unflatten", "view", "reshape", "_unsafe_view", "permute", "transpose", "t",
    "swapaxes", "movedim", "pad", "constant_pad_nd", "roll", "flip", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "squeeze", "unsqueeze", "expand", "expand_as", "repeat", "broadcast_to", "numpy_T", "mT",
}  # fmt: skip
SAME = {"clone", "contiguous", "alias", "to", "_to_copy", "type_as", "float", "double", "lift_fresh_copy", "identity"}
NORMS = {"batch_norm", "native_batch_norm", "_native_batch_norm_legit_no_training", "cudnn_batch_norm"}
CUTS = {"relu", "relu6", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold", "maximum", "minimum"}
LINEAR = {"kernel", "average", "route", "same", "add", "shift", "scale"}  # families whose slope is the same everywhere
COMPARES = {"gt", "ge", "lt", "le", "eq", "ne"}


def family(graph: Graph, step: Step) -> str:
    """The family of a step; '' where it has none, and with it no rule."""
    return families(graph)[step.number]


@once
def families(graph: Graph) -> tuple[str, ...]:
    return tuple(_family(graph, step) for step in graph.steps)


def _family(graph: Graph, step: Step) -> str:
    op = step.op
    for name, ops in (("average", AVERAGES), ("max", MAXIMA), ("from_zero", FROM_ZERO), ("gate", GATES),
                      ("elementwise", ELEMENTWISE),
                      ("route", ROUTES), ("same", SAME), ("compare", COMPARES)):  # fmt: skip
        if op in ops:
            return name
    if op in KERNELS | MATMULS:
        return "kernel" if len(step.inputs) == 1 and kernel_places(step) else ""
    if op in NORMS:
        return "" if argument(step, 5, "training") is True else "norm"
    if op == "max":  # along a dimension; else over everything, or of two tensors
        return "max" if len(step.args) > 1 and isinstance(step.args[1], int) else ""
    if op in CUTS or op == "where":
        return _clamped(graph, step)
    if op in ("add", "sub", "rsub", "mul", "div", "neg", "true_divide"):
        return _arithmetic(graph, step)
    return ""


def argument(step: Step, place: int, name: str, default: Any = None) -> Any:
    return step.args[place] if len(step.args) > place else step.kwargs.get(name, default)


def is_affine_behind(graph: Graph, number: int) -> bool:
    """Whether the logits are an affine function of what one step gives out, and of nothing else."""
    kinds = {family(graph, graph.steps[place]) for place in graph.behind(number)}
    return kinds <= LINEAR | {"norm"} and graph.is_only_way(number)


def kernel_places(step: Step) -> tuple[int, int, int | None] | None:
    """Where a kernel's activation, weights and bias stand among its arguments; None if its weights are not constant."""
    if step.op == "addmm":
        places: tuple[int, int, int | None] = (1, 2, 0)
    elif step.op in ("matmul", "mm", "bmm", "einsum"):
        places = (0, 1, None) if isinstance(step.args[0], Ref) else (1, 0, None)
    else:
        places = (0, 1, 2)
    given = isinstance(step.args[places[0]], Ref) and isinstance(step.args[places[1]], Tensor)
    return places if given else None


def _is_zero(value: object) -> bool:
    return isinstance(value, int | float | Tensor) and not isinstance(value, bool) and not torch.as_tensor(value).any()


def ceiling(step: Step) -> float:
    """The upper bound of a capped ReLU; infinite where there is none."""
    if step.op == "hardtanh":
        return float(argument(step, 2, "max_val", 1.0))
    if step.op == "relu6":
        return 6.0
    if step.op == "clamp" and argument(step, 2, "max") is not None:
        return float(argument(step, 2, "max"))
    return float("inf")


def _clamped(graph: Graph, step: Step) -> str:
    """ReLU, ReLU with a ceiling, or another cut."""
    if step.op in ("relu", "relu6"):
        return "relu" if step.op == "relu" else "relu_capped"
    if step.op == "hardtanh":
        low = argument(step, 1, "min_val", -1.0)
        return "relu_capped" if low == 0 else "from_zero" if low < 0 < ceiling(step) else ""
    if step.op in ("clamp", "clamp_min"):
        return _cut(argument(step, 1, "min"), argument(step, 2, "max"))
    if step.op == "clamp_max":
        return _cut(None, step.args[1])
    if step.op == "threshold":
        return "relu" if argument(step, 1, "threshold") == 0 and argument(step, 2, "value") == 0 else ""
    if step.op == "maximum":
        return "relu" if len(step.inputs) == 1 and any(_is_zero(a) for a in step.args) else ""
    if step.op == "minimum":
        return ""
    condition, kept, other = step.args[:3]
    return "relu" if isinstance(kept, Ref) and _is_zero(other) and _asks(graph, condition, kept.number) else ""


def _cut(low: object, high: object) -> str:
    """Values kept between two bounds, of which one may be missing."""
    if _is_zero(low) and not isinstance(high, Tensor):
        return "relu" if high is None else "relu_capped" if isinstance(high, int | float) and high > 0 else ""
    ends = (-1 if low is None else low, 1 if high is None else high)
    numbers = [end for end in ends if isinstance(end, int | float)]
    return "from_zero" if len(numbers) == 2 and numbers[0] < 0 < numbers[1] else ""


def _asks(graph: Graph, condition: object, number: int) -> bool:
    """Whether a condition is `x > 0` of that very step, maybe as numbers."""
    if not isinstance(condition, Ref):
        return False
    asked = _before_copies(graph, condition.number)
    return asked.op in ("gt", "ge") and asked.inputs == (number,) and _is_zero(asked.args[1])


def is_mask(graph: Graph, number: int) -> bool:
    """Whether a step says where something holds, as truth values or numbers."""
    return _before_copies(graph, number).op in COMPARES


def _before_copies(graph: Graph, number: int) -> Step:
    step = graph.steps[number]
    while step.op in SAME and len(step.inputs) == 1:
        step = graph.steps[step.inputs[0]]
    return step


def _arithmetic(graph: Graph, step: Step) -> str:
    """Sums and products of two activations, or of one with a constant."""
    if step.op == "neg":
        return "scale"
    refs = [a.number for a in step.args[:2] if isinstance(a, Ref)]
    if step.op in ("add", "sub", "rsub"):
        return "add" if len(refs) == 2 else "shift"
    if step.kwargs.get("rounding_mode") is not None:
        return ""
    if len(refs) == 1:
        return "scale" if step.op == "mul" or isinstance(step.args[0], Ref) else ""
    if step.op != "mul":
        return ""
    if any(_asks(graph, Ref(one), other) for one, other in (refs, refs[::-1])):
        return "relu"  # x * (x > 0)
    return "gated" if gate_of(graph, step) is not None else "product"


def gate_of(graph: Graph, step: Step) -> int | None:
    """Which factor of a product comes from a sigmoid or softmax, by the number of its step."""
    for number in step.inputs:
        source = graph.steps[number]
        while source.op in ROUTES | SAME and len(source.inputs) == 1:
            source = graph.steps[source.inputs[0]]
        if source.op in GATES | {"softmax", "_softmax"} and len(step.inputs) == 2:
            return number
    return None


def affine(step: Step, inputs: dict[int, Tensor]) -> bool:
    """Whether an operation without a family is affine: op(x + d) + op(x - d) = 2 op(x) for d as large as x."""
    if step.op in CUTS:
        return False  # though its bounds may lie far off
    generator = torch.Generator().manual_seed(0)
    steps = {}
    for number, value in inputs.items():
        if not value.is_floating_point():
            return False
        drawn = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(value)
        steps[number] = drawn * value.abs().amax().clamp(min=1)
    there = step({n: v + steps[n] for n, v in inputs.items()})
    back = step({n: v - steps[n] for n, v in inputs.items()})
    here = step(inputs)
    if not isinstance(here, Tensor) or not here.is_floating_point():
        return False
    error = (there + back - 2 * here).abs().amax()
    return bool(error <= 1e-4 * (there.abs() + back.abs()).amax())
