"""Ablation-CAM: activations weighted by how far the score falls without each channel (Desai and Ramaswamy, 2020)."""

import torch
from torch import Tensor

from saliometer.methods._cam import RELUS, activations, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model, Scores


@method(passes=256, rendering="raw")
def ablation_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """Activations weighted by the fall of the score when a channel is 0, relative to the score's size."""
    one_of("relu", relu, RELUS)
    found = yield from activations("ablation_cam", model, batch, layer)
    maps = found.maps
    channels = (maps != 0).any(0).flatten(1).any(1).nonzero()[:, 0]  # without the others nothing changes

    def ablated(ks: range) -> Tensor:
        """All channels, then all but the first, all but the second, ..."""
        copies = maps.expand(len(ks), *maps.shape).clone()
        missing = channels[max(0, ks.start - 1) : ks.stop - 1]
        places = torch.arange(len(ks) - len(missing), len(ks), device=maps.device)
        copies[places, :, missing] = 0
        return found.grid.restored(copies, found.output)

    score, without = (yield Scores(ablated, len(channels) + 1, at=found.at)).tensor_split((1,))
    weights = (score - without) / score.abs().where(score != 0, 1)
    return shown(torch.einsum("kn,nkhw->nhw", weights, maps[:, channels]), found, relu)
