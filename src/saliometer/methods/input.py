"""Input: the image itself, which no model had a part in."""

from torch import Tensor

from saliometer.registry import method
from saliometer.types import Batch, Model


@method(control=True, rendering="raw", usual=False)
def input(model: Model, batch: Batch) -> Tensor:
    """The pixel values themselves: says how much a metric can be had by showing the image."""
    return model.pixels(batch.images)
