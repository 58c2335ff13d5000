"""Grad-CAM: a layer's activations, weighted by the mean gradient of each channel (Selvaraju et al., 2017)."""

from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Features, Model


@method(rendering="raw")
def grad_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """A layer's activations weighted by each channel's mean gradient, up-sampled after (or before) a ReLU."""
    one_of("relu", relu, ("before", "after", "none"))
    activations, slopes = yield Features(batch.images, layer or model.cam_layer)
    if activations.ndim != 4 or activations.shape[2:].numel() == 1:
        raise ValueError(
            f"grad_cam: layer '{layer or model.cam_layer}' gives shape {tuple(activations.shape)}, "
            "wanted (N, channels, height, width) with more than one place; name another with grad_cam(layer=NAME)"
        )
    maps = (slopes.mean((2, 3), keepdim=True) * activations).sum(1, keepdim=True)

    def enlarged(maps: Tensor) -> Tensor:
        return F.interpolate(maps, batch.images.shape[2:], mode="bilinear", align_corners=False)

    if relu == "before":
        return enlarged(maps.relu())
    return enlarged(maps).relu() if relu == "after" else enlarged(maps)
