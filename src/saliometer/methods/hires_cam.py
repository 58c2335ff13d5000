"""HiResCAM: a layer's activations times their own gradients, place by place (Draelos and Carin, 2020)."""

from saliometer.methods._cam import RELUS, features, shown
from saliometer.methods._path import loose, missed
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rendering="raw")
def hires_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """A layer's activations times their gradients; before the ReLU they sum to the score less the later biases."""
    one_of("relu", relu, RELUS)
    found, activations, slopes = yield from features("hires_cam", model, batch, layer)
    maps = (slopes * activations).sum(1, keepdim=True)
    score = yield from found.score()
    return shown(maps[:, 0], found, relu, {"loose": loose(maps, score)}, missed(maps, score), score)
