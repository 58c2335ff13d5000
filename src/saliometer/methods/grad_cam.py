"""Grad-CAM: a layer's activations, weighted by the mean gradient of each channel (Selvaraju et al., 2017)."""

from saliometer.methods._cam import RELUS, features, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rendering="raw")
def grad_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """A layer's activations weighted by each channel's mean gradient, up-sampled after (or before) a ReLU."""
    one_of("relu", relu, RELUS)
    found, activations, slopes = yield from features("grad_cam", model, batch, layer)
    maps = (slopes.mean((2, 3), keepdim=True) * activations).sum(1)
    return shown(maps, found, relu)
