"""All ones: the mask that hides nothing, not scaled; what a metric of masked images gives for the whole image."""

from torch import Tensor

from saliometer.registry import method
from saliometer.types import Batch, Model


@method(control=True, rendering="raw", usual=False, mask=True)
def all_ones(model: Model, batch: Batch) -> Tensor:
    """Ones everywhere, as a mask that is not scaled: says what a metric gives when nothing is hidden."""
    return batch.images.new_ones((len(batch), 1, *batch.images.shape[2:]))
