"""LayerCAM: a layer's activations times their own positive gradients, place by place (Jiang et al., 2021)."""

from saliometer.methods._cam import RELUS, features, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rendering="raw")
def layer_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """A layer's activations times the positive part of their gradients, summed over channels."""
    one_of("relu", relu, RELUS)
    found, activations, slopes = yield from features("layer_cam", model, batch, layer)
    return shown((slopes.relu() * activations).sum(1), found, relu)
