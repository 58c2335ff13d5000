"""IBA: how much information each place of a layer must let through for the class to stay (Schulz et al., 2020)."""

import math

import torch
from torch import Tensor

from saliometer.graph import UnfitError
from saliometer.methods._adam import Adam, slopes_of
from saliometer.methods._cam import activations, enlarged, sides
from saliometer.methods._references import some_references
from saliometer.methods._usual import FEWEST, usual
from saliometer.perturb import blurred
from saliometer.registry import method
from saliometer.seeds import normal
from saliometer.types import Asking, Batch, Explained, Gradients, Model, each

START = 5.0  # of every alpha: nearly everything passes
MOST = 1 - 1e-6  # of a share that passes: the capacity of 1 is infinite
FEW = 1000  # references; with fewer it says so


@method(
    random=True,
    quick={"layer": "1", "steps": 3, "copies": 2},
    passes=100,
    budget="steps",
    needs_references=True,
    rendering="raw",
)
def iba(
    model: Model, batch: Batch, *, layer: str = "", beta: float = 10.0, steps: int = 10, copies: int = 10,
    rate: float = 1.0,
) -> Asking:  # fmt: skip
    """A bound on the information, in bits per pixel, that the class needs from each place of a middle layer."""
    if steps < 1 or copies < 1 or beta < 0 or rate <= 0:
        came = f"beta={beta}, steps={steps}, copies={copies}, rate={rate}"
        raise ValueError(f"iba: {came}; wanted steps and copies of 1 or more, beta of 0 or more, rate above 0")
    layer = layer or model.middle_layer
    if not layer:
        raise UnfitError("iba: found no middle layer of feature maps; name one with iba(layer=NAME), not the last")
    references = some_references("iba", batch, fewest=FEWEST)
    found = yield from activations("iba", model, batch, layer)
    mostly = yield from usual("iba", references, layer, found.grid)
    with torch.inference_mode(False):  # tensors that gradients can pass, whatever the caller's mode
        features, active = found.maps.clone(), mostly.active.clone()
        unusual = (features - mostly.mean) / mostly.deviation

    def narrowed(share: Tensor, step: int, copy: int) -> tuple[Tensor, Tensor]:
        """What passes, with noise for the rest, and its slope by the share."""
        drawn = normal(batch.seeds, f"iba {step} {copy}", like=features)
        noise = torch.addcmul(mostly.mean, drawn, mostly.deviation)
        passed, slope = torch.lerp(noise, features, share).mul_(active), (features - noise).mul_(active)
        if not mostly.rectified:
            return passed, slope
        return passed.relu(), torch.ops.aten.threshold_backward(slope, passed, 0)

    def question(share: Tensor, step: int) -> Gradients:
        steps: dict[int, Tensor] = {}  # the slopes of copies that are under way, so that noise is drawn once

        def variant(copy: int) -> Tensor:
            passed, steps[copy] = narrowed(share, step, copy)
            return found.grid.restored(passed[None], found.output)[0]

        def taken(copy: int, slope: Tensor) -> Tensor:
            return found.grid.maps(slope) * steps.pop(copy)

        return Gradients(each(variant), copies, taken, of="log_probability", at=found.at)

    def loss(alpha: Tensor, gain: Tensor) -> Tensor:
        share = shares(alpha)
        cost = active * capacity(share, unusual)
        return beta * cost.mean((1, 2, 3)).sum() - (gain * share).sum()

    descent, alpha = Adam(rate), torch.full_like(features, START)
    for step in range(steps - 1):  # the map is that of the last pass, before its step, as in the authors' code
        gain = yield question(shares(alpha), step)
        alpha = descent(alpha, slopes_of(loss, alpha, gain / copies))
    bits = (active * capacity(shares(alpha), unusual)).sum(1, keepdim=True) / math.log(2)
    spread = math.prod(bits.shape[2:]) / math.prod(batch.images.shape[2:])  # a place's bits over its pixels
    few = torch.full_like(batch.targets, len(references) < FEW, dtype=torch.bool)
    return Explained(enlarged(bits * spread, batch.images), flags={"few_references": few}, facts=sides(found))


def shares(alpha: Tensor) -> Tensor:
    """How much of each feature passes, in [0, 1), smoothed over places by a Gaussian of 5 x 5."""
    return blurred(alpha.sigmoid(), 1.0, truncate=2.0).clamp(max=MOST)


def capacity(share: Tensor, unusual: Tensor) -> Tensor:
    """The most information in nats that passes; `unusual` is how far features are from their mean, in deviations."""
    noise = (1 - share).square()
    return -0.5 * (1 + noise.log() - (share * unusual).square() - noise)
