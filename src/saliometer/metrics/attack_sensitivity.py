"""Attack sensitivity: the most that a map changes under a small change of the image that was searched for."""

from collections.abc import Generator
from functools import partial
from math import inf

import torch
from torch import Tensor

from saliometer.graph import Network
from saliometer.metrics._baselines import parameters
from saliometer.metrics._distances import norms, relative
from saliometer.metrics._smooth import climb, smooth_maps
from saliometer.registry import metric
from saliometer.seeds import uniform
from saliometer.types import Logits, Maps, Measuring, Question, Samples, Scored, Subject, Walk, unaltered

HALVINGS = 3
DIFFERENTIABLE = {"gradient": False, "input_x_gradient": True}  # whether the input is multiplied by the slope


@metric(
    better="lower",
    formula="largest ‖E(x + d) − E(x)‖ ⁄ ‖E(x)‖ on an ascent within |d| ≤ radius that keeps the prediction",
    bounds=(0, inf),
    reads="attribution",
    reexplains=True,
    random=True,
    passes=44,
    quick={"steps": 2},
    parts={"transfer": ""},
    degenerate=("0 if it stays the same", "invalid, nothing is relative to it", "0 if it stays the same"),
)
def attack_sensitivity(
    maps: Tensor,
    samples: Samples,
    subject: Subject,
    *,
    radius: float = 8 / 255,
    steps: int = 10,
    step: float = 2 / 255,
) -> Measuring:
    """The largest |S(x + d) - S(x)| / |S(x)| found by ascent within |d| <= radius that leaves the prediction as it is.

    In pixel values, from a random start, along the sign of the distance's slope; a move that changes the prediction is
    halved up to three times, then left out. For the slope alone ReLUs are smooth. `transfer` is 1 where the search was
    made on the gradient map because the method's own map has no slope to follow.
    """
    if radius <= 0 or step <= 0 or steps < 1:
        raise ValueError(f"attack_sensitivity: radius={radius}, step={step}, steps={steps}; wanted all above 0")
    own = subject.method.name in DIFFERENTIABLE and parameters(subject).get("output", "logit") == "logit"
    times_input = own and DIFFERENTIABLE[subject.method.name]
    points, visited = yield from _search(samples, subject, times_input, radius, steps, step)
    found = yield Maps(lambda ks: points[ks.start : ks.stop], len(points), partial(relative, maps))
    empty = norms(maps) == 0
    value = found.masked_fill(~visited, -inf).amax(0)
    invalid = {
        "nothing is relative to a map of zeros": empty,
        "every move changes the prediction": ~visited.any(0) & ~empty,
        "a map explained anew is not finite": (~found.isfinite() & visited).any(0) & ~empty,
    }
    return Scored(value, {"transfer": torch.full_like(value, float(not own))}, invalid)


def _search(
    samples: Samples, subject: Subject, times_input: bool, radius: float, steps: int, step: float
) -> Generator[Question, Tensor, tuple[Tensor, Tensor]]:
    """The points of the ascent, (steps + 1, N, C, H, W), and which of them are away from the image, (steps + 1, N)."""
    batch, model = samples.batch, subject.model
    images, targets = batch.images, batch.targets
    std = model.channels(images, model.std)
    lowest, highest = model.bounds(images)
    low, high = torch.maximum(images - radius / std, lowest), torch.minimum(images + radius / std, highest)
    label = (yield Logits(unaltered(images), key="image"))[0].argmax(1)

    def smooth(network: Network, rows: slice) -> Tensor:
        with torch.enable_grad():
            return smooth_maps(network, images[rows].clone().requires_grad_(), targets[rows], times_input).detach()

    first = yield Walk(images, smooth)
    noise = uniform(batch.seeds, "attack", *images.shape[1:]).to(images.dtype)
    here = yield from _kept(images, (2 * noise - 1) * radius / std, label, low, high)
    points = [here]
    for _ in range(steps):

        def uphill(network: Network, rows: slice, here: Tensor = here) -> Tensor:
            network.tick(rows.stop - rows.start)  # there and back twice
            return climb(network, here[rows], targets[rows], first[rows], times_input)

        slope = yield Walk(here, uphill, passes=2)
        here = yield from _kept(here, slope.sign() * step / std, label, low, high)
        points.append(here)
    visited = torch.stack([(point != images).flatten(1).any(1) for point in points])
    return torch.stack(points), visited


def _kept(here: Tensor, move: Tensor, label: Tensor, low: Tensor, high: Tensor) -> Generator[Question, Tensor, Tensor]:
    """Where a move leads; halved where it changes the prediction, and not made where that does not help."""
    found, open_ = here, torch.ones_like(label, dtype=torch.bool)
    for halving in range(HALVINGS + 1):
        tried = torch.clamp(here + move / 2**halving, low, high)
        same = (yield Logits(unaltered(tried)))[0].argmax(1) == label
        found = torch.where((open_ & same)[:, None, None, None], tried, found)
        open_ = open_ & ~same
        if not bool(open_.any()):
            break
    return found
