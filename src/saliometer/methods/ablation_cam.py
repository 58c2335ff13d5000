"""Ablation-CAM: activations weighted by how far the score falls without each channel (Desai and Ramaswamy, 2020)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.methods._cam import RELUS, activations, shown
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model, Scores


@method(passes=256, rendering="raw")
def ablation_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """Activations weighted by the fall of the score when a channel is 0, relative to the score's size."""
    one_of("relu", relu, RELUS)
    found = yield from activations("ablation_cam", model, batch, layer)
    maps = found.maps
    count = maps.shape[1]
    channels = (maps != 0).any(0).flatten(1).any(1).nonzero()[:, 0]  # without the others nothing changes
    missing = F.one_hot(torch.cat((channels.new_tensor([count]), channels)), count + 1)[:, :count]  # none, then each
    kept = 1 - missing.to(maps.dtype)[:, None, :, None, None]

    def ablated(ks: range) -> Tensor:
        return found.grid.restored(maps * kept[ks.start : ks.stop], found.output)

    score, without = (yield Scores(ablated, len(kept), at=found.at)).tensor_split((1,))
    weights = (score - without) / score.abs().where(score != 0, 1)
    return shown(torch.einsum("kn,nkhw->nhw", weights, maps[:, channels]), found, relu)
