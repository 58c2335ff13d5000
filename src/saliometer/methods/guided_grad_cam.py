"""Guided Grad-CAM: guided backprop, weighed by where Grad-CAM looks (Selvaraju et al., 2017)."""

from dataclasses import replace

from saliometer.methods._cam import features, shown
from saliometer.methods._rules import GUIDED, signals
from saliometer.registry import method
from saliometer.types import Asking, Batch, Explained, Model


@method(rendering="proj", rules=GUIDED, passes=2)
def guided_grad_cam(model: Model, batch: Batch, *, layer: str = "", other: str = "refuse") -> Asking:
    """Guided backprop times the up-sampled Grad-CAM map."""
    found, activations, slopes = yield from features("guided_grad_cam", model, batch, layer)
    where = shown((slopes.mean((2, 3), keepdim=True) * activations).sum(1), found, "before")
    guided = yield from signals(batch, GUIDED, other)
    assert isinstance(guided, Explained)
    return replace(where, maps=guided.maps * where.maps, flags={**where.flags, **guided.flags})
