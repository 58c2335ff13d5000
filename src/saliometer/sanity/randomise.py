"""Layers drawn anew in place, where they are, from seeds of their own; and the network's own weights back.

A layer is initialised by its own `reset_parameters`, with our streams for random numbers: on every device the same, and
layers of one shape differ. What no initialiser sets is drawn from normal(0, 0.02); a vector of it (a scale, a token) is
shuffled, which keeps its size. Batch norms get the affine part (1, 0); what becomes of their running statistics is said
by `norms`: `reestimate` on reference images, `keep`, or `reset` to (0, 1).
"""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from saliometer.registry import one_of
from saliometer.sanity.layers import Layer, Part, evaluating
from saliometer.seeds import fork, forks, normal, scoped, uniform

NORMS = ("reestimate", "keep", "reset")
REFERENCES = 512  # the most images that statistics are estimated on
TOGETHER = 64  # of them in one pass, whatever the batch size is, so that it changes no number
STD = 0.02
STATISTICS = ("running_mean", "running_var")


@contextmanager
def randomised(
    net: nn.Module,
    layers: Sequence[Layer],
    *,
    seed: int = 0,
    draw: int = 0,
    norms: str = "reestimate",
    references: Tensor | None = None,
) -> Iterator[nn.Module]:
    """The network with these layers drawn anew; its own weights come back, whatever happens inside."""
    with Weights(net, layers, seed=seed, norms=norms, references=references) as weights:
        weights.become(range(len(layers)), draw)
        yield net


class Weights:
    """A network's weights, of which some layers can be drawn anew; at the end of the `with` block all is as it was.

    `references` (R, C, H, W) are images without labels, for `norms="reestimate"`.
    """

    def __init__(
        self,
        net: nn.Module,
        layers: Sequence[Layer],
        *,
        seed: int = 0,
        norms: str = "reestimate",
        references: Tensor | None = None,
    ) -> None:
        self.net, self.layers, self.seed, self.norms = net, list(layers), seed, one_of("norms", norms, NORMS)
        several = [part.module for layer in layers for part in layer.parts if part.keeps_statistics]
        self.statistics = list(dict.fromkeys(several))
        if norms == "reestimate" and self.statistics and references is None:
            raise ValueError("batch norms are to be estimated anew: give references, images without labels, or norms")
        self.references = None if references is None else references[:REFERENCES]
        self.count = 0 if self.references is None or norms != "reestimate" else len(self.references)
        self._kept = {id(value): (value, value.detach().clone()) for value in self._held()}
        self._now: tuple[int, frozenset[int]] = (0, frozenset())
        self._estimated: dict[tuple[int, frozenset[int]], list[Tensor]] = {}

    def __enter__(self) -> "Weights":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def _held(self) -> Iterator[Tensor]:
        for layer in self.layers:
            for part in layer.parts:
                yield from (getattr(part.module, name) for name in part.tensors)
        for module in self.statistics:
            yield from module.buffers(recurse=False)

    def restore(self) -> None:
        """The network's own weights and statistics; a Ctrl-C that comes meanwhile is put off until all are back."""
        try:
            self._bring_back()
        except KeyboardInterrupt:
            self._bring_back()
            raise

    def _bring_back(self) -> None:
        with torch.no_grad():
            for value, own in self._kept.values():
                value.copy_(own)
        self._now = 0, frozenset()

    def forget(self) -> None:
        """Statistics that were estimated before."""
        self._estimated.clear()

    def become(self, chosen: Collection[int], draw: int = 0) -> int:
        """The layers with these numbers are drawn anew, all others are the network's own.

        Going from state to state changes only what differs; statistics are estimated once for each state. Returns how
        many images went through the network for that.
        """
        wanted = frozenset(chosen)
        before, drawn = self._now
        fresh_ones = wanted if before != draw else wanted - drawn
        self._now = -1, drawn | wanted  # until all is done, no state at all
        with torch.no_grad():
            for place in sorted(drawn - wanted):
                self._own(self.layers[place])
            for place in sorted(fresh_ones):
                for part in self.layers[place].parts:
                    for name, value in fresh(part, self.seed, draw).items():
                        getattr(part.module, name).copy_(value)
            passes = self._settle(wanted, draw)
        self._now = draw, wanted
        return passes

    def _own(self, layer: Layer) -> None:
        for part in layer.parts:
            names = (*part.tensors, *(STATISTICS if part.keeps_statistics else ()))
            for value in (getattr(part.module, name) for name in names):
                value.copy_(self._kept[id(value)][1])

    def _settle(self, wanted: frozenset[int], draw: int) -> int:
        """The running statistics of the layers drawn anew."""
        parts = [part for place in sorted(wanted) for part in self.layers[place].parts]
        modules = [part.module for part in parts if part.keeps_statistics]
        if not modules or self.norms == "keep":
            return 0
        if self.norms == "reset":
            for module in modules:
                module.running_mean.zero_()  # type: ignore[operator]
                module.running_var.fill_(1)  # type: ignore[operator]
            return 0
        known = self._estimated.get((draw, wanted))
        if known is None:
            assert self.references is not None
            estimate(self.net, modules, self.references)
            self._estimated[draw, wanted] = [value.clone() for value in _statistics(modules)]
            return self.count
        for value, found in zip(_statistics(modules), known, strict=True):
            value.copy_(found)
        return 0


def _statistics(modules: Sequence[nn.Module]) -> list[Tensor]:
    return [getattr(module, name) for module in modules for name in STATISTICS]


@torch.no_grad()
def estimate(net: nn.Module, modules: Sequence[nn.Module], references: Tensor) -> None:
    """Set running statistics to those of the references; what is behind a batch norm sees them already."""
    heard: dict[nn.Module, list[tuple[Tensor, Tensor]]] = {module: [] for module in modules}

    def before(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        values = inputs[0] if inputs else named["input"]
        if values.numel() == values.shape[1]:
            raise ValueError(
                "a batch norm cannot be estimated on one value for each channel: give 2 references or more, or "
                "norms=keep or norms=reset"
            )
        var, mean = torch.var_mean(values, [dim for dim in range(values.ndim) if dim != 1])
        module.running_mean.copy_(mean)  # type: ignore[operator]
        module.running_var.copy_(var)  # type: ignore[operator]
        heard[module].append((mean.double(), var.double()))

    parts = references.split(TOGETHER)
    handles = []
    try:
        for module in modules:
            handles.append(module.register_forward_pre_hook(before, with_kwargs=True))
        with evaluating(net):
            for part in parts:
                net(part)
    finally:
        for handle in handles:
            handle.remove()
    for module, found in heard.items():
        if len(found) < 2:
            continue
        means, variances = (torch.stack(some) for some in zip(*found, strict=True))
        calls = len(found) // len(parts)  # a module may be called several times for one image
        weights = means.new_tensor([len(part) / (len(references) * calls) for part in parts for _ in range(calls)])
        mean = (weights[:, None] * means).sum(0)
        spread = (weights[:, None] * (variances + (means - mean).square())).sum(0)
        module.running_mean.copy_(mean)  # type: ignore[operator]
        module.running_var.copy_(spread)  # type: ignore[operator]


def fresh(part: Part, seed: int, draw: int) -> dict[str, Tensor]:
    """New values for a part's tensors by their names, (1, 0) for a batch norm."""
    own = {name: getattr(part.module, name).detach() for name in part.tensors}
    if part.keeps_statistics:
        return {name: torch.full_like(value, float(name == "weight")) for name, value in own.items()}
    source = _Source(fork("randomised", seed, draw, part.name))
    found = _initialised(part, source) if own else {}
    return {name: found[name] if name in found else _drawn(source, value) for name, value in own.items()}


def _initialised(part: Part, source: "_Source") -> dict[str, Tensor]:
    """What the module's own initialiser sets, on a shell of it: neither it nor its neighbours are touched."""
    name = _initialiser(part.module)
    if not name:
        return {}
    shell = _shell(part.module)
    before = {one: _memory(getattr(shell, one)) for one in part.tensors}
    try:
        with torch.no_grad(), scoped("randomised"), source:
            getattr(shell, name)()
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"layer '{part.name}' cannot be drawn anew, its {name} fails: {why}") from error
    after = {one: getattr(shell, one).detach() for one in part.tensors}
    return {
        one: value
        for one, value in after.items()
        if _memory(value) != before[one] or before[one] in source.written  # else it has not been set
    }


def _initialiser(module: nn.Module) -> str:
    """The name of what initialises a module, if that can be called without arguments."""
    for name in ("reset_parameters", "_reset_parameters"):
        found = getattr(module, name, None)
        if callable(found) and not any(p.default is p.empty for p in inspect.signature(found).parameters.values()):
            return name
    return ""


def _shell(module: nn.Module) -> nn.Module:
    """A module of the same kind with tensors of its own."""
    shell = module.__new__(type(module))  # copy.copy refuses modules with parametrisations
    held = {name: None if value is None else _like(value) for name, value in module._parameters.items()}
    buffers = {name: None if value is None else value.clone() for name, value in module._buffers.items()}
    children = {name: None if child is None else _shell(child) for name, child in module._modules.items()}
    shell.__dict__.update(module.__dict__, _parameters=held, _buffers=buffers, _modules=children)
    return shell


def _like(value: nn.Parameter) -> nn.Parameter:
    return nn.Parameter(torch.zeros_like(value), requires_grad=False)


def _memory(value: Tensor) -> int:
    return int(value.untyped_storage()._cdata)


def _drawn(source: "_Source", value: Tensor) -> Tensor:
    """For what no initialiser sets."""
    if value.numel() > 1 and value.numel() == max(value.shape):
        order = source.uniform(value.flatten()).argsort(stable=True)
        return value.flatten()[order].view_as(value)
    return STD * source.normal(value)


class _Source(TorchDispatchMode):
    """Our streams instead of the global generator, for initialisers that know only that one."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seed, self.count = seed, 0
        self.written: set[int] = set()  # memory that an operation has written to

    def uniform(self, like: Tensor) -> Tensor:
        rows = self._rows(like)
        shape = like.shape[1:] if like.ndim > 1 else like.shape
        return uniform(rows, "weights", *shape).view_as(like).to(like.dtype)

    def normal(self, like: Tensor) -> Tensor:
        rows = self._rows(like)
        return normal(rows, "weights", like if like.ndim > 1 else like.view(1, -1)).view_as(like)

    def _rows(self, like: Tensor) -> Tensor:
        """A seed for each row of a matrix, one for a vector."""
        self.count += 1
        places = torch.arange(len(like) if like.ndim > 1 else 1, device=like.device)
        return forks(fork(self.seed, self.count), places)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = {} if kwargs is None else kwargs
        if args and isinstance(args[0], Tensor) and func._schema.is_mutable:
            self.written.add(_memory(args[0]))
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        if name == "uniform_":
            low, high = _given(args, kwargs, {"from": 0.0, "to": 1.0})
            return args[0].copy_(self.uniform(args[0]).mul_(high - low).add_(low))
        if name == "normal_":
            mean, std = _given(args, kwargs, {"mean": 0.0, "std": 1.0})
            return args[0].copy_(self.normal(args[0]).mul_(std).add_(mean))
        if name in ("rand", "rand_like", "randn", "randn_like"):
            result = func(*args, **kwargs)
            return result.copy_((self.normal if "randn" in name else self.uniform)(result))
        raise NotImplementedError(f"it draws by '{name}', wanted uniform or normal numbers")


def _given(args: Any, kwargs: Mapping[str, Any], defaults: Mapping[str, float]) -> list[float]:
    """The arguments behind the first, by place or by name."""
    return [
        args[place] if place < len(args) else kwargs.get(name, value)
        for place, (name, value) in enumerate(defaults.items(), 1)
    ]
