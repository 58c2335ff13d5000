"""Guided backprop: the gradient, but a ReLU lets pass only what is positive both ways (Springenberg et al., 2015)."""

from saliometer.methods._rules import GUIDED, signals
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model


@method(rendering="proj", rules=GUIDED, unit="gradient")
def guided_backprop(model: Model, batch: Batch, *, other: str = "refuse") -> Asking:
    """The gradient, but a ReLU lets pass back what is positive, and only where it was open on the way forward."""
    return (yield from signals(batch, GUIDED, other))
