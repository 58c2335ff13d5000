"""Gradient: the slope of the class score at every input value (Simonyan et al., 2014)."""

from saliometer.registry import method
from saliometer.types import Asking, Batch, Gradients, Model, unaltered


@method(rendering="gray")
def gradient(model: Model, batch: Batch) -> Asking:
    """The slope of the target's score at every input value, sign kept."""
    return (yield Gradients(unaltered(batch.images)))
