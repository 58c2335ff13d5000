"""Capture: the tensor operations a network runs, whatever way they are written.

The network is run once on fake tensors, which cost nothing, above autograd, where `nn.ReLU`, `F.relu` and `x.relu()`
are one operation and convolution, batch norm and pooling are still whole. Operations that overwrite their input become
ones that do not. What does not depend on the images is computed once and is a constant from then on.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.proxy_tensor import make_fx

LIBRARY = torch.library.Library("saliometer", "FRAGMENT")
LIBRARY.define("mark(Tensor x, str name) -> Tensor")
LIBRARY.impl("mark", lambda x, name: x.clone(), "CompositeExplicitAutograd")
MARK = torch.ops.saliometer.mark.default
DROPOUTS = ("dropout", "dropout_", "feature_dropout", "feature_dropout_", "alpha_dropout", "feature_alpha_dropout")
SHAPED = ("new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like")


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

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The steps it reads, each once, in the order of its arguments."""
        found: dict[int, None] = {}
        filled((self.args, self.kwargs), lambda ref: found.setdefault(ref.number))
        return tuple(found)

    def __call__(self, values: dict[int, Any]) -> Any:
        args, kwargs = filled((self.args, self.kwargs), lambda ref: values[ref.number])
        return self.call(*args, **kwargs)

    def __str__(self) -> str:
        return f"'{self.op}' in '{self.place}'" if self.place else f"'{self.op}'"


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


Fact = TypeVar("Fact")


def once(fact: Callable[[Graph], Fact]) -> Callable[[Graph], Fact]:
    """A fact about a graph that is found once and kept with it."""

    def known(graph: Graph) -> Fact:
        if fact.__qualname__ not in graph.facts:
            graph.facts[fact.__qualname__] = fact(graph)
        return graph.facts[fact.__qualname__]  # type: ignore[no-any-return]

    return known


def capture(net: nn.Module, logits: Callable[[Tensor], Tensor], images: Tensor) -> Graph:
    """Run the network on fake images and turn what it does into steps."""
    with torch.inference_mode(False), torch.enable_grad(), _marked(net):
        try:
            traced = make_fx(lambda x: logits(x), tracing_mode="fake", _allow_non_fake_inputs=True, pre_dispatch=True)(
                images.clone()
            )
        except Exception as error:
            with torch.no_grad():
                logits(images[:1])  # if the network does not run at all, that is what to say
            why = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            raise UnfitError(
                f"the operations of {type(net).__name__} cannot be captured ({why}), so methods that walk them by "
                "rules do not work on it; gradient, path, CAM and perturbation methods do"
            ) from error
    return _Converter(traced, images).graph()


@contextmanager
def _marked(net: nn.Module) -> Iterator[None]:
    """Every module's output passes an operation that carries the module's name."""

    def hook(name: str) -> Callable[[object, object, object], object]:
        return lambda _module, _inputs, output: MARK(output, name) if isinstance(output, Tensor) else None

    handles = [module.register_forward_hook(hook(name)) for name, module in net.named_modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _Converter:
    """From a traced module to steps: constants are computed, marks become names, overwriting becomes renaming."""

    def __init__(self, traced: fx.GraphModule, images: Tensor) -> None:
        self.traced = traced
        self.steps: list[Step] = []
        self.known: dict[fx.Node, Any] = {}  # node -> Ref or constant
        self.root: dict[int, int] = {}  # step -> the step whose memory it shares
        self.layers: dict[str, int] = {}
        self.places = self._places()

    def graph(self) -> Graph:
        for node in self.traced.graph.nodes:
            if node.op == "output":
                logits = self._value(node.args[0])
                if not isinstance(logits, Ref):
                    raise ValueError("the logits do not depend on the images")
                return Graph(self._used(logits.number), self.layers)
            self.known[node] = self._read(node)
        raise AssertionError("a traced module has an output")

    def _places(self) -> dict[fx.Node, str]:
        """Each node's place: the module that is next to finish."""
        places: dict[fx.Node, str] = {}
        waiting: list[fx.Node] = []
        for node in self.traced.graph.nodes:
            waiting.append(node)
            if node.target is MARK:
                places |= dict.fromkeys(waiting, node.args[1])
                waiting = []
        return places

    def _value(self, argument: Any) -> Any:
        return _plain(fx.node.map_arg(argument, lambda node: self.known[node]))

    def _read(self, node: fx.Node) -> Any:
        if node.op == "placeholder":
            return self._add(node, "input", lambda: None, (), {})
        if node.op == "get_attr":
            return operator.attrgetter(str(node.target))(self.traced)
        args, kwargs = self._value(node.args), self._value(node.kwargs)
        target: Any = node.target
        if target is MARK:
            if isinstance(args[0], Ref):
                self.layers[args[1]] = args[0].number
            return args[0]
        probe = Step(-1, "", "", target, args, kwargs)
        if not probe.inputs:
            return target(*args, **kwargs)
        name = getattr(target, "__name__", str(target)).split(".")[0]
        if name in SHAPED and probe.inputs == (args[0].number,):
            like: Any = node.args[0]
            seen: Tensor = like.meta["val"]  # only its shape, type and place count
            return target(torch.empty(seen.shape, dtype=seen.dtype, device=seen.device), *args[1:], **kwargs)
        if name in DROPOUTS and not args[2]:
            return args[0]  # in eval mode it gives back what it got
        if _overwrites(target):
            return self._overwritten(node, target, name, args, kwargs)
        return self._add(node, name, target, args, kwargs)

    def _add(self, node: fx.Node, name: str, target: Any, args: Any, kwargs: Any) -> Ref:
        number = len(self.steps)
        self.steps.append(Step(number, name, self.places.get(node, ""), target, args, dict(kwargs)))
        self.root[number] = number
        schema = getattr(target, "_schema", None)
        if schema is not None and schema.returns and schema.returns[0].alias_info is not None:
            self.root[number] = self.root[args[0].number] if isinstance(args[0], Ref) else number
        return Ref(number)

    def _overwritten(self, node: fx.Node, target: Any, name: str, args: Any, kwargs: Any) -> Ref:
        """An operation that writes into its first argument: a new step, and later readers get that one."""
        old = args[0]
        plain = getattr(torch.ops.aten, name.removesuffix("_"), None)
        simple = name.endswith("_") and isinstance(old, Ref) and len(target._schema.returns) == 1
        if not simple or plain is None or target._overloadname not in plain.overloads():
            raise ValueError(
                f"'{name}' in '{self.places.get(node, '')}' writes into a tensor in a way that is not followed"
            )
        shared = [n for n, root in self.root.items() if root == self.root[old.number] and n != old.number]
        later = {step for user in self._after(node) for step in self._refs(user)}
        if later & set(shared):
            raise ValueError(
                f"'{name}' in '{self.places.get(node, '')}' writes into a tensor of which another view is used later"
            )
        new = self._add(node, name.removesuffix("_"), getattr(plain, target._overloadname), args, kwargs)
        for known, value in self.known.items():
            if value == old:
                self.known[known] = new
        return new

    def _after(self, node: fx.Node) -> Iterator[fx.Node]:
        while node.op != "output":
            node = node.next
            yield node

    def _refs(self, user: fx.Node) -> Iterator[int]:
        for node in user.all_input_nodes:
            value = self.known.get(node)
            if isinstance(value, Ref):
                yield value.number

    def _used(self, output: int) -> tuple[Step, ...]:
        """The steps that the output depends on, numbered anew; the output is the last."""
        wanted, waiting = {0, output}, [output]
        while waiting:
            for number in self.steps[waiting.pop()].inputs:
                if number not in wanted:
                    wanted.add(number)
                    waiting.append(number)
        new = {old: place for place, old in enumerate(sorted(wanted))}
        self.layers = {name: new[number] for name, number in self.layers.items() if number in new}

        def renamed(value: Any) -> Any:
            return filled(value, lambda ref: Ref(new[ref.number]))

        kept = (self.steps[old] for old in sorted(wanted))
        return tuple(
            Step(new[step.number], step.op, step.place, step.call, renamed(step.args), renamed(step.kwargs))
            for step in kept
        )


def _plain(value: Any) -> Any:
    """Without the immutable lists and dictionaries of torch.fx."""
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)([_plain(one) for one in value])
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def _overwrites(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
