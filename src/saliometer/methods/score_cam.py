"""Score-CAM: activations weighted by the score of the image seen through each channel (Wang et al., 2020)."""

import torch
from torch import Tensor

from saliometer.methods._cam import RELUS, activations, enlarged, ranged, shown
from saliometer.perturb import filled, masked
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model, Scores

WEIGHTS = {"softmax_logits": "logit", "probability": "probability"}  # the article's and the authors' code's


@method(hides=True, passes=256, rendering="raw")
def score_cam(
    model: Model, batch: Batch, *, layer: str = "", weights: str = "softmax_logits", fill: str = "zero",
    relu: str = "before",
) -> Asking:  # fmt: skip
    """Activations weighted by the score of the image where a channel is active; `fill` is what it hides with."""
    one_of("relu", relu, RELUS)
    of = WEIGHTS[one_of("weights", weights, WEIGHTS)]
    images, blank = batch.images, filled(model, batch.images, fill, references=batch.references, seeds=batch.seeds)
    found = yield from activations("score_cam", model, batch, layer)
    maps = found.maps
    shaped = maps.amax((2, 3)) > maps.amin((2, 3))  # (N, k): a flat channel makes no mask
    channels = shaped.any(0).nonzero()[:, 0]

    def through(ks: range) -> Tensor:
        masks = ranged(enlarged(maps[:, channels[ks.start : ks.stop]], images))
        return masked(images, masks.transpose(0, 1)[:, :, None], blank)

    if not len(channels):
        return shown(torch.zeros_like(maps[:, 0]), found, relu)
    key = f"image score_cam {layer} {fill} {relu}"
    scores, chosen = (yield Scores(through, len(channels), of=of, key=key)).T, shaped[:, channels]  # (N, channels) each
    if weights == "softmax_logits":
        scores = scores.masked_fill(~chosen, -torch.inf).softmax(1)
    return shown(torch.einsum("nk,nkhw->nhw", scores.where(chosen, 0), maps[:, channels]), found, relu)
