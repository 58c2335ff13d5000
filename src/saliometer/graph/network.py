"""A network that can be walked: captured once for each shape, and checked against itself before it is believed."""

import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from saliometer.graph.capture import Graph, capture
from saliometer.graph.families import families
from saliometer.graph.folding import folded
from saliometer.graph.walk import Pass

NONLINEAR = {
    "relu", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold", "maximum", "minimum", "where", "leaky_relu",
    "elu", "gelu", "silu", "mish", "hardswish", "hardsigmoid", "sigmoid", "tanh", "max_pool2d_with_indices",
    "adaptive_max_pool2d", "amax", "max", "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm",
    "native_batch_norm", "pow", "exp", "rsqrt", "sqrt", "log", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention_for_cpu", "abs", "softplus",
    "_transformer_encoder_layer_fwd",
}  # fmt: skip
LINEAR = {"kernel", "average", "route", "same", "add", "shift", "scale"}
AGREE = {torch.float64: 1e-9, torch.float32: 1e-4}

_captured: weakref.WeakKeyDictionary[nn.Module, dict[Any, Graph]] = weakref.WeakKeyDictionary()


class Network:
    """What walks are made on: `run` gives a forward pass over the network's steps."""

    def __init__(
        self,
        net: nn.Module,
        logits: Callable[[Tensor], Tensor],
        room: int = 1,
        tick: Callable[[int], None] = lambda images: None,
    ) -> None:
        self.net, self.logits = net, logits
        self.room = room  # how many images fit into one pass
        self.tick = tick  # told how many images have gone through

    def run(self, images: Tensor, *, fold: bool = False, slopes: bool = True, keep: bool = False) -> Pass:
        """A pass that agrees with the network itself, or an error; `fold` puts batch norms into the weights before."""
        graph = self.graph(images)
        forward = Pass(folded(graph) if fold else graph, images, slopes=slopes, keep=keep)
        with torch.no_grad():
            own = self.logits(images[:1])
        error, size = (forward.logits[:1] - own).abs().max(), own.abs().max().clamp(min=1e-3)
        if not bool(error <= AGREE.get(own.dtype, 1e-2) * size):
            if not bool(own.isfinite().all()):
                raise ValueError(
                    f"the logits of {type(self.net).__name__} are not finite: its weights or images are bad"
                )
            raise ValueError(
                f"the captured operations of {type(self.net).__name__} give other logits than the network itself (off "
                f"by {float(error):.2g} of {float(size):.2g}): its forward does something that cannot be followed, so "
                "methods that walk its operations are refused; gradient, path, CAM and perturbation methods work"
            )
        return forward

    def graph(self, images: Tensor) -> Graph:
        """The captured operations for images of this shape; kept while the network stays as it is."""
        shelf = _captured.setdefault(self.net, {})
        state = tuple((id(value), value._version) for value in self.net.state_dict(keep_vars=True).values())
        key = (images.shape, images.dtype, images.device, state, tuple(map(id, self.net.modules())))
        if key not in shelf:
            if len(shelf) > 8:
                shelf.clear()
            graph = capture(self.net, self.logits, images)
            self._counted(graph, images)
            shelf[key] = graph
        return shelf[key]

    def _counted(self, graph: Graph, images: Tensor) -> None:
        """Raise unless the graph runs the nonlinear operations that the network runs, and rules know of each."""
        kinds = families(graph)
        with FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.enable_grad():
            imagined = fake.from_tensor(images.clone())
            with _Counter() as there:
                self.logits(imagined)
            here: Counter[str] = Counter()
            values: dict[int, Any] = {0: imagined}
            for step in graph.steps[1:]:
                with _Counter() as one:
                    values[step.number] = step(values)
                here += one.seen
                hidden = set(one.seen) & NONLINEAR
                if kinds[step.number] in LINEAR and hidden:
                    raise ValueError(
                        f"the operation {step} was taken for linear, but it runs {', '.join(sorted(hidden))}"
                    )
        missed = {op: (n, here[op]) for op, n in there.seen.items() if op in NONLINEAR and here[op] != n}
        if missed:
            op, (wanted, came) = next(iter(missed.items()))
            raise ValueError(
                f"{type(self.net).__name__} runs '{op}' {wanted} times, but {came} were caught: methods that walk its "
                "operations are refused"
            )


class _Counter(TorchDispatchMode):
    """Counts what reaches the dispatcher, below every way to write it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen[func._schema.name.removeprefix("aten::").removesuffix("_")] += 1
        return func(*args, **(kwargs or {}))
