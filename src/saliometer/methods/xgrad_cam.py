"""XGrad-CAM: Grad-CAM with the mean gradient weighted by the activations themselves (Fu et al., 2020)."""

import torch

from saliometer.methods._cam import RELUS, features, shown
from saliometer.methods._path import loose, missed
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rendering="raw")
def xgrad_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """Activations weighted by each channel's gradient, averaged where it is active; sums like hires_cam."""
    one_of("relu", relu, RELUS)
    found, activations, slopes = yield from features("xgrad_cam", model, batch, layer)
    mass = activations.sum((2, 3), keepdim=True)
    weights = (slopes * activations).sum((2, 3), keepdim=True) / mass.where(mass != 0, torch.inf)
    maps = (weights * activations).sum(1, keepdim=True)
    score = yield from found.score()
    return shown(maps[:, 0], found, relu, {"loose": loose(maps, score)}, missed(maps, score), score)
