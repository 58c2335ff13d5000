"""The part of a network behind one layer: from what the layer gives out to logits."""

import torch
from torch import Tensor

from saliometer.types import At, Model


class Tail:
    """Logits of rows of a layer's outputs; row r belongs to image r modulo N, for whatever passes the layer by."""

    def __init__(self, model: Model, at: At, size: int, align: int) -> None:
        self.model, self.at = model, at

    def __call__(self, features: Tensor, rows: slice) -> Tensor:
        layer = self.model.net.get_submodule(self.at.layer)
        places = torch.arange(rows.start, rows.stop, device=features.device) % len(self.at.images)
        filled = torch.cat((places, places[:1].expand(len(features) - len(places))))
        handle = layer.register_forward_hook(lambda _module, _inputs, _output: features)
        try:
            return self.model.logits(self.at.images[filled])
        finally:
            handle.remove()
