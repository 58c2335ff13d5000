"""DeConvNet: the gradient with another rule at every ReLU, which lets pass what is positive (Zeiler & Fergus, 2014)."""

from saliometer.methods._rules import DECONVNET, signals
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model


@method(rendering="proj", rules=DECONVNET, unit="gradient")
def deconvnet(model: Model, batch: Batch, *, other: str = "refuse") -> Asking:
    """The gradient, but a ReLU lets pass back what is positive, whatever it saw on the way forward."""
    return (yield from signals(batch, DECONVNET, other))
