"""Guided integrated gradients: a way to the image that moves flat values first (Kapishnikov et al., 2021)."""

import torch
from torch import Tensor

from saliometer.methods._path import OUTPUTS, complete, risen, vanishes
from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Gradients, Model, unaltered

CLOSE = 1e-9  # of the whole way: near enough to the goal of a step


@method(quick={"steps": 5}, passes=200, budget="steps", unit="contribution", multiplier="baseline")
def guided_ig(
    model: Model,
    batch: Batch,
    *,
    steps: int = 200,
    fraction: float = 0.25,
    max_dist: float = 0.02,
    baseline: str = "zero",
    output: str = "logit",
) -> Asking:
    """The gradient along a way that moves the flattest `fraction` of values first, `max_dist` off the line at most."""
    one_of("output", output, OUTPUTS)
    if steps < 1 or not 0 < fraction <= 1 or max_dist < 0:
        raise ValueError(
            f"guided_ig: steps={steps}, fraction={fraction}, max_dist={max_dist}; wanted steps of 1 or more, "
            "fraction above 0 and up to 1, max_dist of 0 or more"
        )
    images = batch.images
    start = filled(model, images, baseline, references=batch.references, seeds=batch.seeds)
    way = images - start
    lengths = way.flatten(1).double().abs()  # (N, values)
    gone = torch.zeros_like(lengths)  # the share of its way that each value has gone
    total = torch.zeros_like(lengths)
    promised = yield from risen(start, images, output)
    for step in range(1, steps + 1):
        here = start + gone.view_as(way).to(way.dtype) * way
        slope = (yield Gradients(unaltered(here), of=output)).flatten(1)
        ahead = advanced(gone, slope.abs(), lengths, step / steps, fraction, max_dist)
        total += (ahead - gone) * slope
        gone = ahead
    maps = total.view_as(way).to(way.dtype) * way
    same = vanishes(way)
    return complete(maps, promised, {"equal_baseline": same, "zero_gradient": vanishes(maps) & ~same}, {})


def advanced(gone: Tensor, steepness: Tensor, lengths: Tensor, at: float, fraction: float, max_dist: float) -> Tensor:
    """(N, values): the shares gone after a step that brings each image to the share `at` of its way in L1 distance."""
    least, most = max(at - max_dist, 0.0), min(at + max_dist, 1.0)
    place = int(fraction * (lengths.shape[1] - 1)) + 1  # of the threshold among all values, the lower one of two
    whole = lengths.sum(1)
    gone = gone.clamp(min=least)
    going = torch.ones_like(whole, dtype=torch.bool)
    steep = steepness.masked_fill(lengths == 0, torch.inf)  # what has no way to go stays
    while True:
        rest = lengths * (most - gone)
        excess = rest.sum(1) + whole * (at - most)
        going &= excess.abs() > CLOSE * whole
        steep.masked_fill_(gone >= most, torch.inf)
        lowest = steep.topk(place, 1, largest=False, sorted=False).values  # `kthvalue` takes longer
        threshold = lowest.amax(1, keepdim=True).clamp_(max=torch.finfo(steep.dtype).max)
        chosen = (steep <= threshold) & going[:, None]
        room = rest.masked_fill_(~chosen, 0).sum(1)
        share = (excess / room).nan_to_num(0)[:, None]  # without room nothing moves
        moved = torch.lerp(gone, gone.new_tensor(most), share.clamp(0, 1))
        gone = torch.where(chosen, moved, gone)
        going &= (share[:, 0] > 1) & (room > 0)
        if not going.any():
            return gone
