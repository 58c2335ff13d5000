"""Oracle: the scored region itself, the ceiling of a metric."""

from torch import Tensor

from saliometer.registry import method
from saliometer.types import Batch, Model


@method(control=True, needs_truth=True, rendering="raw")
def oracle(model: Model, batch: Batch, *, truth: Tensor) -> Tensor:
    """The primary region filled with 1: says what the best possible map scores. Handed over by the task."""
    return truth[:, None].to(batch.images.dtype)
