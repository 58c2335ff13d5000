"""The layers of a network in the order in which they run, found by running one image; what each of them owns.

A module's own order is that of its definition, which says nothing. Here every parameter is put where the network first
reads it, attention projections, tokens and position embeddings included.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from saliometer.registry import one_of, unknown

BY = ("block", "layer", "module")
CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


@dataclass(frozen=True, eq=False)
class Part:
    """Tensors of one module that are drawn together."""

    name: str  # the module's, or the parameter's where the module owns layers as well: 'conv1', 'class_token'
    module: nn.Module
    tensors: tuple[str, ...]  # as the module calls them
    norm: bool  # it scales what another layer gives out

    @property
    def keeps_statistics(self) -> bool:
        return keeps_statistics(self.module)


@dataclass(frozen=True, eq=False)
class Layer:
    """Parts that are randomised together."""

    name: str
    parts: tuple[Part, ...]


def layers_in_order(net: nn.Module, images: Tensor, *, by: str = "block", only: Sequence[str] = ()) -> list[Layer]:
    """From the images to the logits. `images` (N, C, H, W) are any that the network takes; the first is run.

    By `block` a repeated unit of the network is one layer; by `layer` a module with weights, together with the
    normalisation of what it gives out; by `module` every module alone. `only` names those that are wanted.
    """
    one_of("grouping", by, BY)
    check(net)
    parts = _parts(net)
    used = _in_order(net, images[:1], parts)
    if not used:
        raise ValueError("the model has no weights that its scores depend on, so there is nothing to randomise")
    blocks = {part: _block(net, part) for part in used}
    named = {part: part.name for part in used} if by == "module" else _joined(used, blocks)
    if by == "block":
        named = {part: blocks[host] for part, host in _hosts(used, named).items()}
    groups: dict[str, list[Part]] = {}
    for part in used:
        groups.setdefault(named[part], []).append(part)
    found = {name: Layer(name, tuple(some)) for name, some in groups.items()}
    for name in only:
        if name not in found:
            raise LookupError(unknown("layer", name, found))
    return [layer for name, layer in found.items() if not only or name in only]


def check(net: nn.Module) -> None:
    """Raise where weights cannot be drawn anew."""
    lazy = [name for name, value in _tensors(net) if is_lazy(value)]
    if lazy:
        raise ValueError(
            f"parameter '{lazy[0]}' has no shape yet: run the model once on an image before it is randomised"
        )
    packed = [name for name, module in net.named_modules() if _is_quantised(module)]
    if packed:
        raise ValueError(
            f"layer '{packed[0]}' is quantised: its weights cannot be drawn anew. Give the model before quantisation"
        )
    whole = [(name, value.dtype) for name, value in net.named_parameters() if not value.is_floating_point()]
    if whole:
        name, kind = whole[0]
        raise ValueError(f"parameter '{name}' is of type {kind}, wanted floating point: give the model in float32")
    if not any(True for _ in net.parameters()) and not any(map(keeps_statistics, net.modules())):
        raise ValueError("the model has no parameters, so there is nothing to randomise")


def keeps_statistics(module: nn.Module) -> bool:
    """Whether it is a batch norm with running statistics, by whatever name, its affine part frozen or not."""
    held = module._buffers
    return all(isinstance(held.get(name), Tensor) for name in ("running_mean", "running_var"))


@contextmanager
def evaluating(net: nn.Module) -> Iterator[None]:
    """The network in eval mode, where a pass leaves no trace; every module's own mode comes back."""
    training = [module for module in net.modules() if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


def _is_quantised(module: nn.Module) -> bool:
    return hasattr(module, "_packed_params") or "quantized" in type(module).__module__


def _tensors(net: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from net.named_parameters()
    yield from net.named_buffers()


def _parts(net: nn.Module) -> list[Part]:
    """Everything that has weights of its own; weights that two modules share belong to the first."""
    found, seen = [], set()
    for path, module in net.named_modules():
        names = []
        for name, value in _own(module).items():
            if id(value) not in seen:
                seen.add(id(value))
                names.append(name)
        if not names and not keeps_statistics(module):
            continue
        if any(True for child in module.children() for _ in child.parameters()):
            for stem in dict.fromkeys(map(_stem, names)):
                some = tuple(name for name in names if _stem(name) == stem)
                found.append(Part(f"{path}.{stem}".lstrip("."), module, some, norm=False))
        else:
            found.append(Part(path or ".".join(names), module, tuple(names), _is_norm(module)))
    return found


def _own(module: nn.Module) -> dict[str, Tensor]:
    """Its own parameters, and the weight and bias of a batch norm that keeps them in buffers."""
    frozen = module._buffers.items() if keeps_statistics(module) else ()
    held = [*module._parameters.items(), *((name, value) for name, value in frozen if name in ("weight", "bias"))]
    return {name: value for name, value in held if value is not None and value.is_floating_point()}


def _stem(name: str) -> str:
    """in_proj_weight and in_proj_bias are one layer."""
    return re.sub(r"_(weight|bias)$", "", name)


def _is_norm(module: nn.Module) -> bool:
    vectors = all(value.ndim < 2 for value in module._parameters.values() if value is not None)
    known = isinstance(module, nn.LayerNorm | nn.GroupNorm | nn.modules.batchnorm._NormBase)
    return known or keeps_statistics(module) or ("Norm" in type(module).__name__ and vectors)


class _Reads(TorchDispatchMode):
    """Notes when each tensor is read for the first time, at the dispatcher: below every way to write a layer."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.order: dict[int, int] = {}  # memory -> when

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, Tensor):
                self.order.setdefault(_memory(value), len(self.order))
        return func(*args, **(kwargs or {}))


def _memory(value: Tensor) -> int:
    return int(value.untyped_storage()._cdata)


def _in_order(net: nn.Module, image: Tensor, parts: Sequence[Part]) -> list[Part]:
    """The parts that the network reads, first come first."""
    reads = _Reads()
    with torch.inference_mode(False), torch.enable_grad():  # without gradients some layers run as one operation
        leaf = image.detach().clone().requires_grad_()
        with evaluating(net), reads:
            net(leaf)
    first = {}
    for part in parts:
        held = (getattr(part.module, name) for name in (*part.tensors, *_statistics(part)))
        times = [reads.order[_memory(value)] for value in held if _memory(value) in reads.order]
        if times:
            first[part] = min(times)
    return sorted(first, key=lambda part: first[part])


def _statistics(part: Part) -> tuple[str, ...]:
    return ("running_mean", "running_var") if part.keeps_statistics else ()


def _joined(parts: Sequence[Part], blocks: Mapping[Part, str]) -> dict[Part, str]:
    """A normalisation goes with the layer before it, or the one behind it where only that is of its block."""
    found: dict[Part, str] = {}
    for place, part in enumerate(parts):
        if not part.norm:
            found[part] = part.name
            continue
        before = next((one for one in reversed(parts[:place]) if not one.norm), None)
        behind = next((one for one in parts[place:] if not one.norm), None)
        near = [one for one in (before, behind) if one is not None]
        host = next((one for one in near if blocks[one] == blocks[part]), near[0] if near else part)
        found[part] = host.name
    return found


def _hosts(parts: Sequence[Part], named: Mapping[Part, str]) -> dict[Part, Part]:
    """Each part with the one that it is randomised with."""
    by_name = {part.name: part for part in parts}
    return {part: by_name[named[part]] for part in parts}


def _block(net: nn.Module, part: Part) -> str:
    """The repeated unit of the network that a part lies in, or its own name where there is none."""
    path, module = "", net
    for word in part.name.split("."):
        if word not in module._modules:
            return part.name
        parent, module = module, module.get_submodule(word)
        path = f"{path}.{word}".lstrip(".")
        if isinstance(module, CONTAINERS) or not len(module._modules):
            continue
        alone = len(parent._modules) == 1 and parent is net  # a wrapper of the whole network
        if isinstance(parent, CONTAINERS) or (not alone and not _holds_blocks(module)):
            return path
    return part.name


def _holds_blocks(module: nn.Module) -> bool:
    """Whether it wraps a series of units, as an encoder does, and is no unit itself."""
    return any(
        len(unit._modules) > 0 and not isinstance(unit, CONTAINERS)
        for inside in module.modules()
        if isinstance(inside, CONTAINERS)
        for unit in inside.children()
    )
