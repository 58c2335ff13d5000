"""Opti-CAM: the mix of channels through which the image scores highest, found by ascent (Zhang et al., 2024)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.methods._adam import Adam, slopes_of
from saliometer.methods._cam import activations, ranged, sides
from saliometer.methods._path import vanishes
from saliometer.perturb import filled, masked
from saliometer.registry import method
from saliometer.types import Asking, Batch, Explained, Gradients, Model, unaltered

START = 0.5  # of each channel's weight, before the softmax


@method(quick={"steps": 3}, passes=100, budget="steps", rendering="raw")
def opti_cam(
    model: Model, batch: Batch, *, layer: str = "", steps: int = 100, rate: float = 0.1, fill: str = "black"
) -> Asking:
    """The mask, mixed of a layer's channels, that lets the target score highest; `fill` is what it hides with."""
    if steps < 0 or rate <= 0:
        raise ValueError(f"opti_cam: steps={steps}, rate={rate}; wanted steps of 0 or more, rate above 0")
    images, blank = batch.images, filled(model, batch.images, fill, references=batch.references, seeds=batch.seeds)
    found = yield from activations("opti_cam", model, batch, layer)
    with torch.inference_mode(False):  # tensors that gradients can pass, whatever the caller's mode
        maps = found.maps.clone().relu()
        rows, columns = (_enlarging(maps.shape[side], images.shape[side], maps) for side in (2, 3))

    def mask(weights: Tensor) -> Tensor:
        mixed = torch.einsum("nk,nkhw->nhw", weights.softmax(1), maps)
        return ranged(rows.T @ mixed @ columns)[:, None]

    def loss(weights: Tensor, pull: Tensor) -> Tensor:
        return -(mask(weights) * pull).sum()

    climb = Adam(rate)
    weights = maps.new_full(maps.shape[:2], START)
    for _ in range(steps):
        slope = yield Gradients(unaltered(masked(images, mask(weights), blank)))
        pull = (slope * (images - blank)).sum(1, keepdim=True)
        weights = climb(weights, slopes_of(loss, weights, pull))
    best = mask(weights)
    return Explained(best, flags={"dead_cam": vanishes(best)}, facts=sides(found))


def _enlarging(small: int, large: int, like: Tensor) -> Tensor:
    """(small, large): bilinear interpolation along one side as a matrix, whose gradient repeats to the bit on a GPU."""
    places = torch.eye(small, dtype=like.dtype, device=like.device)
    return F.interpolate(places[None], large, mode="linear", align_corners=False)[0]
