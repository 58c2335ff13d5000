"""Fake-CAM: everything but one corner pixel, the known exploit of average drop and increase (Poppi et al., 2021)."""

from torch import Tensor

from saliometer.registry import method
from saliometer.types import Batch, Model


@method(control=True, rendering="raw")
def fake_cam(model: Model, batch: Batch) -> Tensor:
    """Ones everywhere but at the top left pixel: says how much a metric can be had by marking everything."""
    maps = batch.images.new_ones((len(batch), 1, *batch.images.shape[2:]))
    maps[:, :, 0, 0] = 0
    return maps
