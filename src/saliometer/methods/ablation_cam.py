"""Ablation-CAM: activations weighted by how far the score falls without each channel (Desai and Ramaswamy, 2020)."""

from collections.abc import Generator

import torch
from torch import Tensor

from saliometer.methods._cam import RELUS, Layer, activations, is_affine_behind, shown
from saliometer.methods._path import pair_of
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Gradients, Model, Question, Scores, unaltered

ROUNDING = 1e-4  # what an affine function may be off by, relative to its terms

Falls = Generator[Question, Tensor, tuple[Tensor, Tensor]]  # (N,) scores, and how far they fall without each of (N, k)


@method(passes=256, rendering="raw")
def ablation_cam(model: Model, batch: Batch, *, layer: str = "", relu: str = "before") -> Asking:
    """Activations weighted by the fall of the score when a channel is 0, relative to the score's size."""
    one_of("relu", relu, RELUS)
    found = yield from activations("ablation_cam", model, batch, layer)
    affine = yield from is_affine_behind(found.at)
    score, falls = yield from (_foretold(found) if affine else _tried(found))
    weights = falls / score.abs().where(score != 0, 1)[:, None]
    return shown(torch.einsum("nk,nkhw->nhw", weights, found.maps), found, relu)


def _tried(found: Layer) -> Falls:
    """A pass for every channel."""
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
    falls = maps.new_zeros(maps.shape[:2])
    falls[:, channels] = (score - without).T
    return score[0], falls


def _foretold(found: Layer) -> Falls:
    """Only affine operations follow the layer: slopes say what every channel brings. Tried where all of them are 0."""
    empty = found.grid.restored(torch.zeros_like(found.maps)[None], found.output)[0]
    score, rest = yield Scores(pair_of(found.output, empty), 2, at=found.at)
    slopes = yield Gradients(unaltered(found.output), at=found.at)
    terms = found.grid.maps(slopes) * found.maps
    falls = terms.sum((2, 3))
    missed = (score - rest - falls.sum(1)).abs()
    if (missed > ROUNDING * (terms.abs().sum((1, 2, 3)) + score.abs())).any():
        return (yield from _tried(found))
    return score, falls
