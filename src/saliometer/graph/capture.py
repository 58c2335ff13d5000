"""Capture: the tensor operations a network runs, whatever way they are written.

The network is run once on fake tensors, which cost nothing, above autograd, where `nn.ReLU`, `F.relu` and `x.relu()`
are one operation and convolution, batch norm and pooling are still whole. Operations that overwrite their input become
ones that do not. What does not depend on the images is computed for real, once, and is a constant from then on.
"""

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from threading import RLock
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

LIBRARY = torch.library.Library("saliometer", "FRAGMENT")
LIBRARY.define("mark(Tensor x, str name) -> Tensor")
LIBRARY.impl("mark", lambda x, name: x.clone(), "CompositeExplicitAutograd")
MARK = fx.node.has_side_effect(torch.ops.saliometer.mark.default)  # it stays though nobody reads what it gives out
BEGINS, ENDS = "begins ", "ends "  # mark what goes into a module, and what comes out if it is not just one tensor
DROPOUTS = ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
MAXIMA_AND_PLACES = ("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool1d_with_indices",
                     "max_pool2d_with_indices", "max_pool3d_with_indices", "max")  # fmt: skip
SHAPED = ("new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided", "zeros_like", "ones_like",
          "full_like", "empty_like")  # of their first argument only the shape, type and place count # fmt: skip
LIKE: dict[str, Callable[[Any, Tensor], tuple[str, Any, tuple[Any, ...]]]] = {  # of another tensor's shape or type
    "expand_as": lambda x, other: ("expand", torch.ops.aten.expand.default, (x, list(other.shape))),
    "view_as": lambda x, other: ("reshape", torch.ops.aten.reshape.default, (x, list(other.shape))),
    "reshape_as": lambda x, other: ("reshape", torch.ops.aten.reshape.default, (x, list(other.shape))),
    "type_as": lambda x, other: ("to", torch.ops.aten.to.dtype, (x, other.dtype)),
}
LOOKS = frozenset(
    ("item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__index__", "__array__", "__dlpack__", "equal",
     "allclose", "is_nonzero", "__contains__")
)  # from a tensor to Python # fmt: skip
WRITES = frozenset(f"__{name}__" for name in (
    "setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift",
    "irshift"
))  # into what they are called on # fmt: skip
ALONE = RLock()  # fake tensors are for one thread at a time
INSTEAD = "so methods that walk its operations are refused; gradient, path, CAM and perturbation methods work"


class UnfitError(ValueError):
    """A method and a network do not go together; other methods may."""


@dataclass(frozen=True)
class Ref:
    """Stands in an argument list for what a step gives out."""

    number: int


@dataclass(frozen=True, eq=False)
class Step:
    """One operation whose result depends on the images; step 0 is the images themselves."""

    number: int
    op: str  # 'relu', 'conv2d', ...: the operation's name, the same for all spellings
    place: str  # the module it runs in
    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] = ()  # of what it gives out; empty where that is several tensors

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The steps it reads, each once, in the order of its arguments."""
        return tuple(dict.fromkeys(_refs((self.args, self.kwargs))))

    @cached_property
    def _flat(self) -> bool:
        """Whether no Ref hides inside a list or among the keywords."""
        return sum(isinstance(one, Ref) for one in self.args) == len(_refs((self.args, self.kwargs)))

    def __call__(self, values: Mapping[int, Any]) -> Any:
        if self._flat:
            return self.call(*[values[a.number] if type(a) is Ref else a for a in self.args], **self.kwargs)
        args, kwargs = filled((self.args, self.kwargs), lambda ref: values[ref.number])
        return self.call(*args, **kwargs)

    def __str__(self) -> str:
        return f"'{self.op}' in '{self.place}'" if self.place else f"'{self.op}'"


def _refs(value: Any) -> list[int]:
    """The steps that nested arguments name, in their order."""
    found: list[int] = []
    filled(value, lambda ref: found.append(ref.number))
    return found


def filled(value: Any, fill: Callable[[Ref], Any]) -> Any:
    """Nested arguments with every Ref replaced."""
    if isinstance(value, Ref):
        return fill(value)
    if type(value) in (tuple, list):
        return type(value)([filled(one, fill) for one in value])
    if type(value) is dict:
        return {name: filled(one, fill) for name, one in value.items()}
    return value


@dataclass(frozen=True, eq=False)
class Graph:
    """The steps from images to logits, for one shape of images."""

    steps: tuple[Step, ...]
    layers: dict[str, int]  # module -> the step that is its (last) output
    facts: dict[str, Any] = field(default_factory=dict)  # what was found out about it

    @cached_property
    def consumers(self) -> list[list[int]]:
        """For each step, the steps that read it."""
        found: list[list[int]] = [[] for _ in self.steps]
        for step in self.steps:
            for number in step.inputs:
                found[number].append(step.number)
        return found

    @property
    def output(self) -> int:
        return len(self.steps) - 1

    def behind(self, number: int) -> list[int]:
        """The steps that depend on one step, in order."""
        reached = {number}
        for step in self.steps[number + 1 :]:
            if reached & set(step.inputs):
                reached.add(step.number)
        return sorted(reached - {number})

    def is_only_way(self, number: int) -> bool:
        """Whether all that the logits depend on passes one step: what is behind it reads nothing else."""
        known = {number, *self.behind(number)}
        return self.output in known and all(set(self.steps[n].inputs) <= known for n in known - {number})


Fact = TypeVar("Fact")


def once(fact: Callable[[Graph], Fact]) -> Callable[[Graph], Fact]:
    """A fact about a graph that is found once and kept with it."""

    def known(graph: Graph) -> Fact:
        if fact.__qualname__ not in graph.facts:
            graph.facts[fact.__qualname__] = fact(graph)
        return graph.facts[fact.__qualname__]  # type: ignore[no-any-return]

    return known


def capture(net: nn.Module, logits: Callable[[Tensor], Tensor], images: Tensor, *, named: bool = True) -> Graph:
    """Run the network on fake images and turn what it does into steps; to have them `named` takes twice as long."""

    constants = _Constants(net)

    def run(images: Tensor) -> Tensor:
        with constants:
            return logits(images)

    traced = make_fx(run, tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True)
    marked = _marked(net) if named else nullcontext()
    try:
        with ALONE, torch.inference_mode(False), torch.enable_grad(), _unchanged(net), constants.put_back(), marked:
            found = traced(images.clone())
    except Exception as error:
        with torch.no_grad():
            if not isinstance(error, UnfitError):
                logits(images[:1])  # if the network does not run at all, that is what to say
        why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
        raise UnfitError(f"the operations of {type(net).__name__} cannot be captured ({why}), {INSTEAD}") from error
    if constants.looked:
        raise UnfitError(
            f"{type(net).__name__} looks at numbers that depend on the images, by '{constants.looked}', and may do "
            f"something else for each, {INSTEAD}"
        )
    graph = _Converter(found, type(net).__name__).graph()
    graph.facts["numbers"] = constants.numbers
    graph.facts["written"] = bool(constants.before)
    return graph


class _Constants(TorchFunctionMode):
    """What has nothing to do with the fake images is computed for real, so that a forward may look at it."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.numbers = False  # whether it did, so that a number of today is in the graph
        self.looked = ""  # how it looked at what the images decide: that fails, but a forward may catch it
        self.before: dict[Tensor, Tensor] = {}  # weights and buffers that were written to, and what they held
        self.own: dict[int, list[Tensor]] = {}  # by their memory
        for value in (*net.parameters(), *net.buffers()):
            if value.layout == torch.strided:
                self.own.setdefault(storage_of(value), []).append(value)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given, name = tree_leaves((args, kwargs)), getattr(func, "__name__", "")
        followed = any(isinstance(value, FakeTensor) for value in given)
        own = self._own(given[0]) if given and _writes(name) else []
        if own and followed:
            raise UnfitError(f"its forward writes what it makes of images into its weights or buffers, by '{name}'")
        if followed and name in LOOKS:
            self.looked = name
        if func is torch._C._set_grad_enabled or followed:
            return func(*args, **(kwargs or {}))
        self.numbers |= name in LOOKS
        with disable_proxy_modes_tracing(), unset_fake_temporarily():
            self.before |= {value: value.detach().clone() for value in own if value not in self.before}
            return func(*args, **(kwargs or {}))

    def _own(self, value: Any) -> list[Tensor]:
        """The network's tensors that lie in the same memory."""
        strided = isinstance(value, Tensor) and value.layout == torch.strided
        return self.own.get(storage_of(value), []) if strided else []

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """What a network counts in its buffers, passes say, is as it was."""
        try:
            yield
        finally:
            with torch.no_grad():
                for value, was in self.before.items():
                    value.copy_(was)


def _writes(name: str) -> bool:
    """Whether a function of that name writes into its first argument: `mul_`, `__iadd__`, `__setitem__`."""
    return (name.endswith("_") and not name.endswith("__")) or name in WRITES


@contextmanager
def _unchanged(net: nn.Module) -> Iterator[None]:
    """What a forward keeps in attributes, lists and dictionaries of its modules is as it was: no fake tensor stays."""
    kept: list[Any] = [module.__dict__ for module in net.modules()]
    kept += [value for attributes in kept for value in attributes.values() if isinstance(value, list | dict)]
    before = [one.copy() for one in kept]
    try:
        yield
    finally:
        for one, was in zip(kept, before, strict=True):
            if isinstance(one, list):
                one[:] = was
                continue
            for name in one.keys() - was.keys():
                del one[name]
            one.update(was)  # and never empty, for other threads may run the network


@contextmanager
def _marked(net: nn.Module) -> Iterator[None]:
    """Every module's input and output pass an operation that carries the module's name."""

    def noted(given: object, mark: str) -> None:
        for tensor in [leaf for leaf in tree_leaves(given) if isinstance(leaf, Tensor)][:1]:
            MARK(tensor, mark)

    def before(name: str) -> Callable[..., None]:
        return lambda _module, args, kwargs: noted((args, kwargs), BEGINS + name)

    def after(name: str) -> Callable[..., Tensor | None]:
        return lambda _module, _inputs, output: (
            MARK(output, name) if isinstance(output, Tensor) else noted(output, ENDS + name)
        )

    handles: list[RemovableHandle] = []
    try:
        for name, module in net.named_modules():
            handles.append(module.register_forward_pre_hook(before(name), with_kwargs=True))
            handles.append(module.register_forward_hook(after(name)))
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Converter:
    """From a traced module to steps: constants are computed, marks become names, overwriting becomes renaming."""

    def __init__(self, traced: fx.GraphModule, name: str) -> None:
        self.traced, self.name = traced, name
        self.steps: list[Step] = []
        self.known: dict[fx.Node, Any] = {}  # node -> Ref or constant
        self.given: dict[int, Tensor] = {}  # step -> the fake tensor it gave, which knows whose memory it shares
        self.marked: dict[int, int] = {}  # the memory of what a mark gave out -> of what it was given
        self.layers: dict[str, int] = {}
        self.places = self._places()
        self.tracked = True  # whether gradients are on
        self.untracked: set[int] = set()  # steps that ran without

    def graph(self) -> Graph:
        for node in self.traced.graph.nodes:
            if node.op == "output":
                logits = self._value(node.args[0])
                if not isinstance(logits, Ref):
                    raise ValueError(f"the logits of {self.name} do not depend on the images")
                return Graph(self._used(logits.number), self.layers)
            self.known[node] = self._read(node)
        raise AssertionError("a traced module has an output")

    def _places(self) -> dict[fx.Node, str]:
        """Each node's place: the innermost module that has begun and not finished; the network's own name outside."""
        places: dict[fx.Node, str] = {}
        inside: list[str] = []
        for node in self.traced.graph.nodes:
            if node.target is not MARK:
                places[node] = (inside[-1] if inside else "") or self.name
                continue
            mark = str(node.args[1])
            if mark.startswith(BEGINS):
                inside.append(mark.removeprefix(BEGINS))
            elif (ended := mark.removeprefix(ENDS)) in inside:  # with those inside it that gave out no tensor at all
                del inside[len(inside) - 1 - inside[::-1].index(ended) :]
        return places

    def _value(self, argument: Any) -> Any:
        return _plain(fx.node.map_arg(argument, lambda node: self.known[node]))

    def _read(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return self._add(node, "input", lambda: None, (), {})
        if node.op == "get_attr":
            value = operator.attrgetter(str(node.target))(self.traced)
            if isinstance(value, FakeTensor):
                raise UnfitError(f"{self.name} takes a tensor's `.data`, behind which nothing is followed, {INSTEAD}")
            return value if value.is_leaf else value.detach()
        args, kwargs = self._value(node.args), self._value(node.kwargs)
        target: Any = node.target
        if target is MARK:
            before: Any = node.args[0]
            self.marked[storage_of(node.meta["val"])] = self._storage(before.meta["val"])
            if isinstance(args[0], Ref) and not args[1].startswith((BEGINS, ENDS)):
                self.layers[args[1]] = args[0].number
            return args[0]
        if target is torch._C._set_grad_enabled:
            self.tracked = args[0]
            return None
        if _is_open(node.meta.get("val")):
            raise UnfitError(
                f"in {self.places[node]} the images decide a number or shape, by '{_name(target)}', so that something "
                f"else may be done for each, {INSTEAD}"
            )
        probe = Step(-1, "", "", target, args, kwargs)
        if not probe.inputs:
            return target(*args, **kwargs)
        name = _name(target)
        if name in SHAPED and probe.inputs == (args[0].number,):
            like: Any = node.args[0]
            seen: Tensor = like.meta["val"]  # only its shape, type and place count
            return target(torch.empty(seen.shape, dtype=seen.dtype, device=seen.device), *args[1:], **kwargs)
        if name.removesuffix("_") in DROPOUTS and not args[2]:
            return args[0]  # in eval mode it gives back what it got
        if _overwrites(target):
            return self._overwritten(node, target, name, args, kwargs)
        if name in LIKE:
            other: Any = node.args[1]
            name, target, args = LIKE[name](args[0], other.meta.get("val", self.known[other]))
            return self._add(node, name, target, args, {}) if isinstance(args[0], Ref) else target(*args)
        if name == "einsum" and len(args[1]) == 2:
            return self._add(node, name, partial(_einsum, args[0]), tuple(args[1]), {})
        if name in MAXIMA_AND_PLACES and len(target._schema.returns) == 2:
            return self._add(node, name, partial(_one_of, target, 0), args, kwargs)
        if target is operator.getitem and self.steps[args[0].number].op in MAXIMA_AND_PLACES:
            return args[0] if args[1] == 0 else self._maxima_places(node, self.steps[args[0].number])
        return self._add(node, name, target, args, kwargs)

    def _maxima_places(self, node: fx.Node, maxima: Step) -> Ref:
        """Where the maxima are, as a step of its own, which no rule knows."""
        call: Any = maxima.call
        return self._add(node, "places of maxima", partial(_one_of, call.args[0], 1), maxima.args, maxima.kwargs)

    def _add(self, node: fx.Node, name: str, target: Any, args: Any, kwargs: Any) -> Ref:
        number, value = len(self.steps), node.meta.get("val")
        shape = tuple(value.shape) if isinstance(value, Tensor) else ()
        self.steps.append(Step(number, name, self.places[node], target, args, dict(kwargs), shape))
        if isinstance(value, Tensor):
            self.given[number] = value
        if not self.tracked:
            self.untracked.add(number)
        return Ref(number)

    def _overwritten(self, node: fx.Node, target: Any, name: str, args: Any, kwargs: Any) -> Ref:
        """An operation that writes into its first argument: a new step, and later readers get that one."""
        old = args[0]
        plain = getattr(torch.ops.aten, name.removesuffix("_"), None)
        simple = name.endswith("_") and isinstance(old, Ref) and len(target._schema.returns) == 1
        what = f"the operation '{name}' in '{self.places[node]}' writes into a tensor"
        if not simple or plain is None or target._overloadname not in plain.overloads():
            raise UnfitError(f"{what} in a way that is not followed, {INSTEAD}")
        if any(
            self._share(self.given[old.number], self.given[n])
            for n in self._later(node) & self.given.keys() - {old.number}
        ):
            raise UnfitError(f"{what} of which another view is used later, {INSTEAD}")
        new = self._add(node, name.removesuffix("_"), getattr(plain, target._overloadname), args, kwargs)
        for known, value in self.known.items():
            if type(value) is Ref and value.number == old.number:
                self.known[known] = new
        return new

    def _storage(self, value: Tensor) -> int:
        """As if there were no marks, which give out copies."""
        storage = storage_of(value)
        return self.marked.get(storage, storage)

    def _share(self, one: Tensor, other: Tensor) -> bool:
        """Whether two tensors have a place in memory in common, as far as can be seen."""
        if self._storage(one) != self._storage(other):
            return False
        seen = (
            storage_of(one) == storage_of(other)
            and one.dtype == other.dtype
            and 0 not in (*one.stride(), *other.stride())
        )
        return not seen or _overlap(one, other)

    def _later(self, node: fx.Node) -> set[int]:
        """The steps so far that are read behind a node."""
        found: set[int] = set()
        while node.op != "output":
            node = node.next
            values = (self.known.get(given) for given in node.all_input_nodes)
            found |= {value.number for value in values if isinstance(value, Ref)}
        return found

    def _used(self, output: int) -> tuple[Step, ...]:
        """The steps that the output depends on, numbered anew; the output is the last."""
        wanted, waiting = {0, output}, [output]
        while waiting:
            for number in self.steps[waiting.pop()].inputs:
                if number not in wanted:
                    wanted.add(number)
                    waiting.append(number)
        for number in sorted(wanted & self.untracked):
            raise UnfitError(
                f"the operation {self.steps[number]} runs with gradients turned off, so nothing can be sent back "
                "through it; perturbation methods work"
            )
        new = {old: place for place, old in enumerate(sorted(wanted))}
        self.layers = {name: new[number] for name, number in self.layers.items() if number in new}

        def renamed(value: Any) -> Any:
            return filled(value, lambda ref: Ref(new[ref.number]))

        kept = (self.steps[old] for old in sorted(wanted))
        return tuple(
            replace(step, number=new[step.number], args=renamed(step.args), kwargs=renamed(step.kwargs))
            for step in kept
        )


def _is_open(value: Any) -> bool:
    """Whether Python sees a number, or a tensor's shape, that only real images would tell."""
    numbers = (
        number for leaf in tree_leaves(value) for number in (leaf.shape if isinstance(leaf, Tensor) else (leaf,))
    )
    return any(isinstance(number, torch.SymInt | torch.SymFloat | torch.SymBool) for number in numbers)


def storage_of(value: Tensor) -> int:
    """A number that tensors have in common that share memory; while one of them lives."""
    return int(value.untyped_storage()._cdata)


def _overlap(one: Tensor, other: Tensor) -> bool:
    """Of two views of the same memory."""
    marks = torch.zeros(one.untyped_storage().nbytes() // one.element_size(), dtype=torch.bool)
    marks.as_strided(one.shape, one.stride(), one.storage_offset()).fill_(True)
    return bool(marks.as_strided(other.shape, other.stride(), other.storage_offset()).any())


def _plain(value: Any) -> Any:
    """Without the immutable lists and dictionaries of torch.fx."""
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)([_plain(one) for one in value])
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def _name(target: Any) -> str:
    """An operation's name, with that of its library unless it is one of PyTorch's own."""
    if not isinstance(target, torch._ops.OpOverload):
        return str(getattr(target, "__name__", target))
    name = target._schema.name.removeprefix("aten::")
    return "convolution" if name == "_convolution" else name


def _einsum(equation: str, one: Tensor, other: Tensor) -> Tensor:
    return torch.einsum(equation, one, other)


def _one_of(target: Any, place: int, *args: Any, **kwargs: Any) -> Tensor:
    """One of the several results of an operation."""
    result: Tensor = target(*args, **kwargs)[place]
    return result


def _overwrites(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
