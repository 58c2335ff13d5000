"""Gradient: the slope of the class score at every input value (Simonyan et al., 2014)."""

from saliometer.methods._path import OUTPUTS, vanishes
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Explained, Gradients, Model, unaltered


@method(rendering="gray", unit="gradient")
def gradient(model: Model, batch: Batch, *, output: str = "logit") -> Asking:
    """The slope of the target's score at every input value, sign kept."""
    one_of("output", output, OUTPUTS)
    slope = yield Gradients(unaltered(batch.images), of=output)
    return Explained(slope, flags={"zero_gradient": vanishes(slope)})
