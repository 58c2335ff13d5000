"""Input times gradient: the first-order share of every input value in the score (Shrikumar et al., 2016)."""

from saliometer.registry import method
from saliometer.types import Asking, Batch, Gradients, Model, unaltered


@method()
def input_x_gradient(model: Model, batch: Batch) -> Asking:
    """The input times the gradient there; sums to the score on networks without biases."""
    slope = yield Gradients(unaltered(batch.images))
    return batch.images * slope
