"""A network that can be walked: captured once for each shape, and checked against itself before it is believed."""

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import Node
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from saliometer.graph.capture import ALONE, INSTEAD, SHAPED, Graph, Step, UnfitError, capture, storage_of
from saliometer.graph.families import LINEAR, families
from saliometer.graph.folding import folded
from saliometer.graph.walk import Pass, Repeated

LOOKS_BELOW = {"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2", "unique_dim",
               "unique_consecutive"}  # numbers of tensors that Python gets to see, themselves or as shapes # fmt: skip
LOOKS_PAST = {"numpy", "tolist", "__array__", "__dlpack__"}  # the same past the dispatcher
NONLINEAR = LOOKS_BELOW | {
    "relu", "hardtanh", "clamp", "clamp_min", "clamp_max", "threshold", "maximum", "minimum", "where", "masked_fill",
    "leaky_relu", "_prelu_kernel", "rrelu_with_noise", "elu", "celu", "gelu", "silu", "mish", "hardswish",
    "hardsigmoid", "hardshrink", "softshrink", "softplus", "sigmoid", "log_sigmoid_forward", "tanh", "erf", "sin",
    "cos", "atan", "amax", "amin", "max", "min", "topk", "sort", "median", "kthvalue", "cummax", "logsumexp",
    "_softmax", "_log_softmax", "pow", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "abs", "sign",
    "round", "floor", "ceil", "trunc", "frac", "remainder", "fmod", "linalg_vector_norm", "norm", "var", "std",
    "var_mean", "prod", "cumprod", "glu", "_transformer_encoder_layer_fwd", "_native_multi_head_attention",
}  # fmt: skip
CHOICES = {"where", "masked_fill"}  # linear where the choice does not depend on the images
GROUPS = ("batch_norm", "layer_norm", "group_norm", "max_pool", "scaled_dot_product")  # one name for all their kernels
PRODUCTS = {"mul", "div", "bmm", "mm", "addmm", "baddbmm", "addcmul", "addcdiv", "convolution", "dot", "mv"}
FLAGS = frozenset((bool, float, str))  # kinds of attributes of a module that decide what it does
CHANGED = (
    " was changed since it was captured: try again; if its own forward writes to its weights or buffers, use gradient, "
    "path, CAM or perturbation methods"
)
AGREE = {torch.float64: 1e-9, torch.float32: 1e-4}

_captured: weakref.WeakKeyDictionary[nn.Module, dict[Any, Graph]] = weakref.WeakKeyDictionary()


class StaleError(UnfitError):
    """A network was changed in a way that its state does not show; what was captured of it is forgotten."""


@dataclass(eq=False)
class _Twin:
    """One image's logits by a graph that was run, and by the network itself."""

    graph: Graph
    image: Tensor
    found: Tensor
    own: Tensor | None = None  # to be found


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
        self.layout = torch.contiguous_format  # in which images go through fastest
        self._counts: Counter[str] | None = None  # of the nonlinear operations that the network itself was seen to run
        self._renewed = False  # what was captured before was forgotten
        self._twins: list[_Twin] = []
        self._checked = True  # since the last pass

    def walked(self, walk: Callable[["Network", slice], Tensor], rows: slice) -> Tensor:
        """What a walk finds, compared with the network itself; done again if the network was another one by then."""
        found = self._tried(walk, rows)
        if found is None:
            found = walk(self, rows)
        self.settle()
        return found

    def _tried(self, walk: Callable[["Network", slice], Tensor], rows: slice) -> Tensor | None:
        try:
            return walk(self, rows)
        except StaleError:
            return None
        except ValueError:
            if not self._stale():
                raise
            return None

    def run(self, images: Tensor, *, fold: bool = False, slopes: bool = True, keep: bool = False) -> Pass:
        """A pass, to be compared with the network itself later; `fold` puts batch norms into the weights before."""
        graph = self.graph(images, believed=True)
        forward = Pass(folded(graph) if fold else graph, images, slopes=slopes, keep=keep, check=self._check)
        if not any(twin.graph is graph for twin in self._twins):
            self._twins.append(_Twin(graph, images[:1], forward.logits[:1]))
        self._checked = False
        return forward

    def laid_out(self, images: Tensor) -> Tensor:
        """For walks whose time is that of their passes; DeepLIFT's comparisons are faster in the plain layout."""
        return images.contiguous(memory_format=self.layout)

    def repeated(self, forward: Pass, copies: int) -> Repeated:
        """A folded pass as if it had been made on so many copies of its images."""
        own, images = forward.graph, forward.values[0]
        images = images[:1].expand(copies * len(images), -1, -1, -1)
        graph = folded(self.graph(images, believed=True))
        if graph.facts["state"][0] != own.facts["state"][0]:  # of the two, which one is true is seen later
            graph = folded(self.graph(images))
        if [step.op for step in graph.steps] != [step.op for step in own.steps]:
            raise UnfitError(f"{type(self.net).__name__} runs other operations on more images, {INSTEAD}")
        return Repeated(forward, graph, copies)

    def _check(self) -> None:
        """For the end of a walk, when a GPU has its work: what the network itself runs is counted meanwhile."""
        if not self._checked and self._stale():
            raise StaleError(type(self.net).__name__ + CHANGED)
        self._checked = True

    def _stale(self) -> bool:
        """Whether the network runs other operations than were captured, which is forgotten then; an error if again."""
        state = state_of(self.net) if self._twins else None
        if any(twin.graph.facts["state"][0] != state for twin in self._twins):
            self.look_again()
            self._twins.clear()
            return True
        if self._twins and self._counts is None:
            self._counts = self._own(self._twins[0])
        counts = (twin.graph.facts["nonlinear"] for twin in self._twins)
        other = next((found for found in counts if found != self._counts), None)
        if other is None:
            return False
        _captured.pop(self.net, None)
        self._twins.clear()
        if self._renewed:
            raise UnfitError(self._difference(self._counts or Counter(), other))
        self._renewed = True
        return True

    def _own(self, twin: _Twin) -> Counter[str]:
        """The nonlinear operations that the network itself runs; its logits are kept.

        To count them takes a while; where autograd's trail is the one that was left when they were counted, they are
        the same.
        """
        facts = twin.graph.facts
        with torch.enable_grad():  # without gradients some layers run as one operation
            leaf = twin.image.detach().clone().requires_grad_()
            counter = _Counter(leaf)
            with nullcontext() if "trail" in facts else counter.all():
                logits = self.logits(leaf.clone())
        twin.own, trail = logits.detach(), _trail(logits)
        if "trail" not in facts:
            if counter.seen == facts["nonlinear"]:
                facts["trail"] = trail
            return counter.seen
        if facts["trail"] == trail:
            return facts["nonlinear"]  # type: ignore[no-any-return]
        del facts["trail"]
        return self._own(twin)

    def _difference(self, wanted: Counter[str], came: Counter[str]) -> str:
        op = next(op for op in sorted(wanted | came) if wanted[op] != came[op])
        return f"{type(self.net).__name__} runs '{op}' {wanted[op]} times, but {came[op]} were caught, {INSTEAD}"

    def settle(self) -> None:
        """Raise unless the passes so far agree with the network itself; once at the end, for it waits for a GPU."""
        self._check()
        twins, self._twins = self._twins, []
        for twin in twins:
            with torch.no_grad():
                own = self.logits(twin.image) if twin.own is None else twin.own
            error, size = (twin.found - own).abs().max(), own.abs().max().clamp(min=1e-3)
            if bool(error <= AGREE.get(own.dtype, 1e-2) * size):
                continue
            _captured.pop(self.net, None)
            if twin.graph.facts["renewed"]:
                raise StaleError(type(self.net).__name__ + CHANGED)
            if not bool(own.isfinite().all()):
                raise ValueError(
                    f"the logits of {type(self.net).__name__} are not finite: its weights or images are bad"
                )
            raise UnfitError(
                f"the captured operations of {type(self.net).__name__} give other logits than the network itself (off "
                f"by {float(error):.2g} of {float(size):.2g}): its forward does something that cannot be followed, "
                f"{INSTEAD}"
            )

    def overflow(self, images: Tensor) -> Step | None:
        """The first operation on these images whose result is not finite."""
        values = Pass(self.graph(images), images, slopes=False).values
        bad = (n for n, value in values.items() if not all(one.isfinite().all() for one in _tensors(value)))
        return next((self.graph(images).steps[number] for number in bad), None)

    def graph(self, images: Tensor, *, believed: bool = False) -> Graph:
        """The captured operations for images of this shape; kept while the network stays as it is.

        To look whether it did takes a while: who has it `believed` looks later.
        """
        shelf = _captured.setdefault(self.net, {})
        key = (images.shape, images.dtype, images.device)
        if key in shelf and believed:
            return shelf[key]
        self.look_again()
        if key not in shelf:
            if len(shelf) > 8:
                shelf.clear()
            shelf[key] = self._new(images)
        return shelf[key]

    def look_again(self) -> None:
        """Forget what was captured of a network that was another one; steps that read its own memory stay."""
        state, shelf = state_of(self.net), _captured.get(self.net, {})
        for key, known in list(shelf.items()):
            before, held = known.facts["state"]
            if before == state:
                continue
            del shelf[key]
            if known.facts["live"] and (before[:2], before[3]) == (state[:2], state[3]):  # only weights were written to
                shelf[key] = _renewed(known)
                shelf[key].facts["state"] = state, held

    def _new(self, images: Tensor) -> Graph:
        state = state_of(self.net)
        graph = capture(self.net, self.logits, images)
        graph.facts["nonlinear"] = nonlinear(graph, images)
        held = *self.net.parameters(), *self.net.buffers()  # while they live, ids are their own
        graph.facts["state"] = state, held
        graph.facts["live"] = is_live(graph, held)
        graph.facts["renewed"] = False
        return graph


def is_live(graph: Graph, state: Sequence[Tensor]) -> bool:
    """Whether every constant is the network's own memory, so that weights written to are seen by the graph."""
    if graph.facts["numbers"]:
        return False
    own = {storage_of(value) for value in state}
    held = (value for step in graph.steps for value in tree_leaves((step.args, step.kwargs)))
    return all(storage_of(value) in own for value in held if isinstance(value, Tensor))


def _renewed(graph: Graph) -> Graph:
    """The same steps on weights that were written to: what was found out about the old ones is forgotten."""
    kept = {name: graph.facts[name] for name in ("nonlinear", "bent", "live", "trail") if name in graph.facts}
    return Graph(graph.steps, graph.layers, kept | {"renewed": True})


def nonlinear(graph: Graph, images: Tensor) -> Counter[str]:
    """The nonlinear operations that the steps of a graph run; an error where one was taken for linear."""
    kinds, bent = families(graph), set[int]()
    with ALONE, FakeTensorMode(allow_non_fake_inputs=True) as fake, torch.enable_grad():
        values: dict[int, Any] = {0: fake.from_tensor(images.clone())}
        counter = _Counter(values[0])
        for step in graph.steps[1:]:
            before = counter.seen.copy()
            with counter:
                values[step.number] = step(values)
            hidden = counter.seen - before
            if hidden.keys() - CHOICES:
                bent.add(step.number)
            if kinds[step.number] in LINEAR and hidden:
                raise UnfitError(f"the operation {step} was taken for linear, but it runs {', '.join(sorted(hidden))}")
    graph.facts["bent"] = frozenset(bent)
    return counter.seen


def looks_in(logits: Callable[[Tensor], Tensor], images: Tensor) -> set[str]:
    """How a network looks at numbers that depend on its images: it may do something else for others."""
    given = images.clone()  # which it may write into
    counter = _Counter(given)
    with torch.no_grad(), counter.all():
        logits(given)
    return counter.seen.keys() & (LOOKS_BELOW | LOOKS_PAST)


def state_of(net: nn.Module) -> tuple[Any, ...]:
    """Something that is no longer the same once a module, a weight, a buffer or a flag was replaced or written to."""
    modules = modules_of(net)
    held: list[Any] = []
    values: list[Any] = []
    for module in modules:
        held += module._parameters.values()
        held += module._buffers.values()
        values += vars(module).values()
    versions = [0 if value is None or value.is_inference() else value._version for value in held]
    flags = [value for value in values if type(value) in FLAGS]
    return tuple(map(id, modules)), tuple(map(id, held)), tuple(versions), tuple(flags)


def modules_of(net: nn.Module) -> list[nn.Module]:
    """Each once, as `net.modules()` has them in another order and more slowly."""
    found, left = {}, [net]
    while left:
        module = left.pop()
        if module is not None and id(module) not in found:
            found[id(module)] = module
            left += module._modules.values()  # type: ignore[arg-type]
    return list(found.values())


def _trail(logits: Tensor) -> tuple[str, ...]:
    """The operations that autograd would go back through, by name and always in the same order."""
    seen, left = dict[Node, str](), [logits.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen[node] = node.name()
            left += [before for before, _ in node.next_functions]
    return tuple(seen.values())


class _Counter(TorchDispatchMode):
    """Counts nonlinear operations on what depends on the images, at the dispatcher: below every way to write them."""

    def __init__(self, images: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: Counter[str] = Counter()
        self.reached = {
            storage_of(images): images
        }  # memory that depends on the images; held, so that none is used twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        given = sum(storage_of(value) in self.reached for value in _tensors((*args, *kwargs.values())))
        name = _name(func) if given else ""
        if given and name not in SHAPED:
            group = _group(name)
            if group in GROUPS or name in NONLINEAR or (name in PRODUCTS and given > 1):
                self.seen[group] += 1
            for value in _tensors(result):
                self.reached[storage_of(value)] = value
        return result

    @contextmanager
    def all(self) -> Iterator[None]:
        """With what goes from tensors to Python past the dispatcher."""
        with self, _Past(self):
            yield


class _Past(TorchFunctionMode):
    """Adds to a counter what it cannot see."""

    def __init__(self, counter: _Counter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in LOOKS_PAST and storage_of(args[0]) in self.counter.reached:
            self.counter.seen[name] += 1
        return func(*args, **(kwargs or {}))


@cache
def _name(func: Any) -> str:
    name: str = func._schema.name
    return name.removeprefix("aten::").removesuffix("_")


@cache
def _group(name: str) -> str:
    return next((word for word in GROUPS if word in name), name)


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, tuple | list):
        for one in values:
            yield from _tensors(one)
