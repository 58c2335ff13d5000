"""The slope of a map's distance to a first one: through a network whose ReLUs are smooth, so that it has one."""

from math import inf
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from saliometer.graph import Network

BETA = 30.0  # how sharply a softplus bends
CEILINGS = {"relu": inf, "relu6": 6.0}
EDGES = {"hardtanh": ("min_val", "max_val"), "clamp": ("min", "max"), "clip": ("min", "max"), "clamp_min": ("min", "")}


class Softplus(TorchFunctionMode):
    """While it is on, softplus stands for the bends of ReLU and ReLU6, however they are written."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        ceiling = _ceiling(name.removesuffix("_"), args, kwargs)
        if ceiling is None:
            return func(*args, **kwargs)
        values: Tensor = args[0] if args else kwargs["input"]
        in_place = name.endswith("_") or kwargs.get("inplace", False)
        found = _bent(values.clone() if in_place else values, ceiling)
        return values.copy_(found) if in_place else found


def _ceiling(name: str, args: Any, kwargs: Any) -> float | None:
    """What a ReLU lets through at most; None for anything else."""
    if name not in EDGES:
        return CEILINGS.get(name)
    given = dict(zip(EDGES[name], args[1:], strict=False)) | kwargs
    low, high = (given.get(word) for word in EDGES[name])
    if isinstance(low, Tensor) or isinstance(high, Tensor) or low != 0:
        return None
    return inf if high is None else float(high)


def _bent(values: Tensor, ceiling: float) -> Tensor:
    values = F.softplus(values, beta=BETA)
    return values if ceiling == inf else ceiling - F.softplus(ceiling - values, beta=BETA)


def smooth_maps(network: Network, images: Tensor, targets: Tensor, times_input: bool) -> Tensor:
    """(N, C, H, W): the gradient of the smooth network's logit, or the input times it; can be differentiated."""
    with Softplus(), sdpa_kernel(SDPBackend.MATH):
        score = network.logits(images.clone()).gather(1, targets.clone()[:, None]).sum()
    (slope,) = torch.autograd.grad(score, [images], create_graph=True, allow_unused=True)
    if slope is None:
        raise ValueError("no gradient reaches the images from the score")
    return images * slope if times_input else slope


def climb(network: Network, images: Tensor, targets: Tensor, first: Tensor, times_input: bool) -> Tensor:
    """(N, C, H, W): the slope of the squared distance between the images' smooth maps and the `first` ones."""
    with torch.enable_grad():
        images = images.clone().requires_grad_()
        maps = smooth_maps(network, images, targets, times_input)
        if not maps.requires_grad:
            return torch.zeros_like(images)
        (slope,) = torch.autograd.grad((maps - first).square().sum(), [images], allow_unused=True)
    return torch.zeros_like(images) if slope is None else slope
