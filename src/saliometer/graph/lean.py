"""A lean pass: a network's own logits, with fewer looks at memory on the way.

What follows a convolution (batch norm, a residual sum, a clamp) is one look at what it gave out, or is done while it is
made; padding by zeros is the convolution's own; values go as soon as nobody reads them. Only the network's structure is
remembered: weights are read where it keeps them. Numbers are the network's but for rounding.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from saliometer.fused import onednn
from saliometer.graph.capture import Graph, Step, UnfitError, capture
from saliometer.graph.families import argument
from saliometer.graph.finishing import Finishing
from saliometer.graph.joined import Joined, is_conv, joined
from saliometer.graph.network import is_live, looks_in
from saliometer.graph.precomputed import Precomputed
from saliometer.graph.sizes import SIZES, grown, is_same, sized

SMALL = 0.2  # the share of the products in ordinary convolutions up to which channels last is a GPU's faster layout
PLANS = 16  # batch sizes that are kept ready
# Operations that make numbers of numbers; all others may make what is not one, or infinity:
SOUND = frozenset((
    "conv1d", "conv2d", "conv3d", "conv_transpose2d", "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum",
    "add", "sub", "rsub", "neg", "mul", "square", "abs", "maximum", "minimum", "relu", "relu6", "hardtanh", "clamp",
    "clamp_min", "clamp_max", "threshold", "leaky_relu", "prelu", "elu", "selu", "celu", "gelu", "silu", "mish",
    "hardswish", "hardsigmoid", "sigmoid", "tanh", "softplus", "erf", "sin", "cos", "mean", "sum", "amax", "amin",
    "max_pool2d", "avg_pool2d", "max_pool2d_with_indices", "adaptive_avg_pool2d", "adaptive_max_pool2d",
    "upsample_nearest2d", "upsample_bilinear2d", "upsample_bicubic2d", "batch_norm", "view", "reshape", "flatten",
    "unflatten", "permute", "transpose", "t", "movedim", "unsqueeze", "squeeze", "slice", "select", "narrow",
    "getitem", "split", "split_with_sizes", "tensor_split", "chunk", "unbind", "expand", "repeat", "contiguous",
    "clone", "alias", "detach", "to", "roll", "flip", "cat", "stack", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "constant_pad_nd", "pad",
))  # fmt: skip
LARGE = 1e12  # beyond, sums of products may leave float32
NORMS = {"layer_norm": 4, "group_norm": 4}  # and these, where this argument, which is added to a variance, is above 0
MANY = 64  # with channels last a GPU's batches of more than that are multiples of it


class NotFiniteError(ArithmeticError):
    """Something is not a number on the way, or so large that what follows may not be, which a clamp would hide."""


class Lean:
    """Captured for images like this one, (1, C, H, W), in batches of any size; `UnfitError` where nothing is won."""

    def __init__(self, net: nn.Module, logits: Callable[[Tensor], Tensor], image: Tensor) -> None:
        held = (*net.parameters(), *net.buffers())
        if any(value.dtype != torch.float32 for value in held if value.is_floating_point()):
            raise UnfitError("a lean pass is for float32")
        few = [image.expand(size, *image.shape[1:]) for size in SIZES]
        graphs = [capture(net, logits, images, named=False) for images in few]
        if not all(is_live(graph, held) for graph in graphs):
            raise UnfitError(f"{type(net).__name__} computes weights in its forward")
        if any(graph.facts["written"] for graph in graphs):
            raise UnfitError(f"{type(net).__name__} writes into its weights or buffers")
        if looks := looks_in(logits, few[0]):
            raise UnfitError(f"{type(net).__name__} looks at numbers that depend on images, by {', '.join(looks)}")
        self._grown = [grown(*steps) for steps in zip(*(graph.steps for graph in graphs), strict=True)]
        if any(_is_short(leaf) for step in self._grown for leaf in tree_leaves((step.args, step.kwargs))):
            raise UnfitError("a lean pass is for float32")
        self.steps, norms = joined(graphs[0], self._grown)
        self.hides_nan = onednn.fits(image)
        self.way = Precomputed(norms) if self.hides_nan else Finishing(norms)
        self._watched = {s.number for s in self.steps if isinstance(s, Step) and not _is_sound(s)}
        self.layout = torch.channels_last if self.hides_nan else _layout(graphs[0])
        self._fitting: dict[int, bool] = {}  # by batch size
        self._plans: dict[int, list[tuple[Step | Joined, list[int]]]] = {}  # with what nobody reads afterwards

    def __call__(self, images: Tensor) -> Tensor:
        way = self.way.begin()
        rows = self._filled_up(images)
        values: dict[int, Any] = {0: rows.contiguous(memory_format=self.layout)}
        for step, done in self._plan(len(rows)):
            values[step.number] = way.run(step, values) if isinstance(step, Joined) else step(values)
            if self.hides_nan and step.number in self._watched and not _is_small(values[step.number]):
                raise NotFiniteError
            for number in done:
                del values[number]
        (logits,) = values.values()
        return logits[: len(images)]  # type: ignore[no-any-return]

    def fits(self, net: nn.Module, logits: Callable[[Tensor], Tensor], images: Tensor) -> bool:
        """Whether the network runs the same operations in batches of this size, which logits need not show."""
        count = len(images)
        if count not in self._fitting:
            try:
                own = capture(net, logits, images, named=False).steps
            except UnfitError:
                own = ()
            steps = [sized(step, count) for step in self._grown]
            self._fitting[count] = len(own) == len(steps) and all(map(is_same, steps, own))
        return self._fitting[count]

    def begin_anew(self) -> None:
        """What was made of weights is forgotten, also where nothing shows that they were written to."""
        self.way.forget()

    def lay_out_plainly(self) -> None:
        """For networks that look at their values by `view`."""
        self.layout = torch.contiguous_format
        self.begin_anew()

    def _filled_up(self, images: Tensor) -> Tensor:
        """With channels last a GPU seems to take a second to get ready for a batch size: there are few."""
        few = isinstance(self.way, Finishing) and self.layout == torch.channels_last
        if not few or len(images) <= MANY:  # few where memory is short
            return images
        short = -len(images) % MANY
        return torch.cat((images, images[-1:].expand(short, *images.shape[1:]))) if short else images

    def _plan(self, count: int) -> list[tuple[Step | Joined, list[int]]]:
        if count not in self._plans:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            steps = [step if isinstance(step, Joined) else sized(step, count) for step in self.steps]
            last = {number: place for place, step in enumerate(steps) for number in step.inputs}
            ends: list[list[int]] = [[] for _ in steps]
            for number, place in last.items():
                ends[place].append(number)
            self._plans[count] = list(zip(steps, ends, strict=True))
        return self._plans[count]


def _is_sound(step: Step) -> bool:
    return step.op in SOUND or (step.op in NORMS and argument(step, NORMS[step.op], "eps", 0.0) > 0)


def _is_small(value: Any) -> bool:
    tensors = (one for one in tree_leaves(value) if isinstance(one, Tensor) and one.is_floating_point() and one.numel())
    return all(bool(torch.linalg.vector_norm(one, torch.inf) < LARGE) for one in tensors)  # never for NaN


def _is_short(value: Any) -> bool:
    """Whether it is a kind of numbers that ends long before float32 does."""
    return isinstance(value, torch.dtype) and value.is_floating_point and value.itemsize < torch.float32.itemsize


def _layout(graph: Graph) -> torch.memory_format:
    """Of a GPU: channels last where the products are nearly all in 1x1 and depthwise convolutions."""
    total = ordinary = deep = 0
    for step in filter(is_conv, graph.steps):
        weight: Tensor = step.args[1]
        products = torch.Size(step.shape[1:]).numel() * weight[0].numel()
        total += products
        if weight.shape[2:] != (1, 1):
            alone = weight.shape[1] == 1 < len(weight)
            deep += products * alone
            ordinary += products * (not alone)
    return torch.channels_last if deep and ordinary <= SMALL * total else torch.contiguous_format
