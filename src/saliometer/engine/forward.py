"""How forward passes run: on a GPU lean ones, where they give what the network gives; else the network itself."""

from collections.abc import Callable

import torch
from torch import Tensor

from saliometer.engine.device import exact
from saliometer.engine.known import Known
from saliometer.fused import kernels
from saliometer.graph.lean import Lean
from saliometer.types import Model

WORTH = 4096  # passes from which the seconds that it takes to prepare a lean one are won back


def forward_of(model: Model, image: Tensor, known: Known | None = None) -> Callable[[Tensor], Tensor]:
    """For images like this one, (1, C, H, W); prepared once, and kept while the network stays as it is."""
    if not kernels(image):
        return model.logits
    lean: Lean | None = (known or Known(model.net, image))("lean", lambda: _lean(model, image))
    return lean or model.logits


def _lean(model: Model, image: Tensor) -> Lean | None:
    try:
        with exact():
            lean = Lean(model.net, model.logits, image)
            return lean if lean.agrees(model.logits, image) else None
    except (ValueError, RuntimeError):  # it cannot be captured, or one of its operations fails there
        torch.cuda.empty_cache()
        return None
