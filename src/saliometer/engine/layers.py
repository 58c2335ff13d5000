"""The layer that CAM methods read, found by running one image: the last feature maps before places are lost."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from saliometer.methods._cam import SKEWED, Grid, grid_of, skew
from saliometer.seeds import uniform

PASSING = ("Pad", "Dropout", "DropPath", "DropBlock", "StochasticDepth", "Identity", "Permute", "Reshape", "Rearrange")
NORMS = ("LayerNorm", "RMSNorm")
ATTENTIONS = ("Attention", "Attn")
CLOSE = 1e-5  # logits this close, relative to the largest, are the same


@dataclass
class Run:
    """What happened while one image went through a network."""

    outputs: list[tuple[str, Tensor]] = field(default_factory=list)  # of modules, in the order in which they finished
    pooled: list[Tensor] = field(default_factory=list)  # tensors that a pooling made
    calls: Counter[str] = field(default_factory=Counter)
    norm: str = ""  # the last normalisation over channels to finish
    attended: str = ""  # the one that finished last before the last attention began

    def last(self) -> Iterator[tuple[str, Tensor]]:
        """The last output of every module, latest first: a module that is called again stands for its last call."""
        seen: set[str] = set()
        for name, output in reversed(self.outputs):
            if name not in seen:
                seen.add(name)
                yield name, output

    def is_pooled(self, tensor: object) -> bool:
        return any(tensor is one for one in self.pooled)


def cam_layer(net: nn.Module, image: Tensor) -> str:
    """The name of the layer for one image (1, C, H, W), '' if there is none.

    In networks with attention the normalisation before the last attention; else the last feature maps (a block counts
    as its own last layer) that no pooling made and that are the only way to the score.
    """
    run, modules = _watched(net, image), dict(net.named_modules())

    def grid(name: str, output: Tensor) -> Grid | None:
        return grid_of(output.shape, image.shape, modules[name]) if len(output) == len(image) else None

    for name, output in run.last():
        found = grid(name, output) if name == run.attended else None
        if found and skew((found.height, found.width), image.shape) < SKEWED:  # else a window's places, not the image's
            return name
    for name, output in run.last():
        made = output.ndim == 4 and not _is(modules[name], PASSING) and not run.is_pooled(output)
        if made and grid(name, output) and _is_only_way(net, modules[name], run.calls[name], image):
            return name
    return ""


def middle_layer(net: nn.Module, image: Tensor) -> str:
    """The last of the layers that are the only way to the score and have an eighth of the image's side or more.

    ResNet: layer2. VGG: the convolutions before the fourth pooling. '' if there is none.
    """
    run, modules = _watched(net, image), dict(net.named_modules())
    for name, output in run.last():
        spatial = output.ndim == 4 and 8 * output.shape[2] >= image.shape[2]
        made = spatial and not _is(modules[name], PASSING) and not run.is_pooled(output)
        grid = grid_of(output.shape, image.shape, modules[name]) if made else None
        if grid and _is_only_way(net, modules[name], run.calls[name], image):
            return name
    return ""


def _watched(net: nn.Module, image: Tensor) -> Run:
    run = Run()

    def began(name: str, module: nn.Module) -> Callable[..., None]:
        def hook(*_: object) -> None:
            run.calls[name] += 1
            if _is(module, ATTENTIONS):
                run.attended = run.norm

        return hook

    def finished(name: str, module: nn.Module) -> Callable[..., None]:
        def hook(_module: object, inputs: tuple[object, ...], output: object) -> None:
            if not isinstance(output, Tensor):
                return
            run.outputs.append((name, output))
            if _is(module, NORMS):
                run.norm = name
            if _pools(module) or (_is(module, PASSING) and any(map(run.is_pooled, inputs))):
                run.pooled.append(output)

        return hook

    seen = ((name, one) for name, one in net.named_modules() if name)
    named = [(name, one) for name, one in seen if not isinstance(one, torch.jit.ScriptModule)]  # which hides its layers
    before = [module.register_forward_pre_hook(began(name, module)) for name, module in named]
    after = [module.register_forward_hook(finished(name, module)) for name, module in named]
    try:
        with torch.no_grad():
            net(image)
    finally:
        for handle in (*before, *after):
            handle.remove()
    return run


def _is(module: nn.Module, words: tuple[str, ...]) -> bool:
    return any(word in type(module).__name__ for word in words)


def _pools(module: nn.Module) -> bool:
    return "Pool" in type(module).__name__ and next(module.parameters(), None) is None


def _is_only_way(net: nn.Module, module: nn.Module, calls: int, image: Tensor) -> bool:
    """Whether two images of noise get the same logits once the layer gives zeros for both, at its last call."""
    seeds = torch.arange(2, device=image.device)
    images = uniform(seeds, "two images", *image.shape[1:]).to(image.dtype)
    with torch.no_grad(), replaced(module, calls, torch.zeros_like):
        logits = net(images)
    if not isinstance(logits, Tensor):
        return True  # whoever asks for scores will be told
    return bool((logits[0] - logits[1]).abs().max() <= CLOSE * logits.abs().max())


@contextmanager
def replaced(module: nn.Module, calls: int, instead: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """A layer gives out something else at the last of so many calls."""
    left = itertools.count(calls - 1, -1)
    handle = module.register_forward_hook(
        lambda _module, _inputs, output: instead(output) if next(left) % calls == 0 else None
    )
    try:
        yield
    finally:
        handle.remove()
