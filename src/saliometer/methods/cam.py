"""CAM: feature maps weighted as the linear layer behind their mean weighs them (Zhou et al., 2016)."""

import torch
from torch import Tensor, nn

from saliometer.graph import UnfitError
from saliometer.methods._cam import RELUS, activations, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model

ROUNDING = 1e-5  # the score may differ by this share of its terms from what the head would give


@method(rendering="raw", usual=False)
def cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "none") -> Asking:
    """A layer's activations weighted by the last linear layer; the mean of a map and its bias are the score."""
    one_of("relu", relu, RELUS)
    found = yield from activations("cam", model, batch, layer)
    score = yield from found.score()
    refusal = UnfitError(
        f"cam: what follows layer '{found.at.layer}' of model '{model.name}' is not a mean over its places and one "
        "linear layer; use grad_cam, or name another layer with cam(layer=NAME)"
    )
    head = _head(model, found.maps.shape[1], batch.targets)
    if head is None:
        raise refusal
    weights, bias, classes = head
    maps = torch.einsum("nk,nkhw->nhw", weights, found.maps)
    residual = maps.mean((1, 2), dtype=torch.float64) + bias - score
    terms = (weights * found.maps.mean((2, 3))).abs().sum(1) + bias.abs()
    explained = shown(maps, found, relu, {}, residual, score)
    if (residual.abs() > ROUNDING * terms).any() or (batch.targets >= classes).any():
        raise refusal
    return explained


def _head(model: Model, channels: int, targets: Tensor) -> tuple[Tensor, Tensor, int] | None:
    """(N, k) weights and (N,) biases of the targets in the last linear layer that reads that many channels.

    And how many classes that layer has: targets beyond them, which were given another's weights, are not its own.
    """
    for module in reversed(list(model.net.modules())):
        if isinstance(module, nn.Linear) and module.in_features == channels:
            weights = module.weight.detach()
            bias = weights.new_zeros(len(weights)) if module.bias is None else module.bias.detach()
            if len(bias) == 1:  # one logit z stands for the scores -z and z
                weights, bias = torch.cat((-weights, weights)), torch.cat((-bias, bias))
            known = targets.clamp(max=len(bias) - 1)
            return weights[known], bias[known], len(bias)
    return None
