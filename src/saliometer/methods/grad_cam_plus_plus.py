"""Grad-CAM++: a layer's activations, each channel weighted by its positive gradients (Chattopadhyay et al., 2018)."""

from saliometer.methods._cam import RELUS, features, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model

TINY = 1e-6  # keeps the denominator from 0; the value of all published code


@method(rendering="raw")
def grad_cam_plus_plus(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """A layer's activations weighted by each channel's positive gradients, more where few places carry them."""
    one_of("relu", relu, RELUS)
    found, activations, slopes = yield from features("grad_cam_plus_plus", model, batch, layer)
    square = slopes.square()
    denominator = 2 * square + activations.sum((2, 3), keepdim=True) * square * slopes + TINY
    shares = (square / denominator).nan_to_num(0, 0, 0)  # of signed activations the denominator may be 0
    weights = (shares * slopes.relu()).sum((2, 3), keepdim=True)
    signed = (activations < 0).flatten(1).any(1)
    return shown((weights * activations).sum(1), found, relu, {"signed_activations": signed})
