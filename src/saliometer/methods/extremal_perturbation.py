"""Extremal perturbations: the smooth mask of a given area that keeps the score highest (Fong et al., 2019)."""

from collections.abc import Generator, Sequence

import torch
from torch import Tensor

from saliometer.methods._extremal import Brush, brush, mixed, pyramid, sharpened
from saliometer.perturb import blurred
from saliometer.registry import method, one_of
from saliometer.seeds import uniform
from saliometer.types import SCORES, Asking, Batch, Explained, Gradients, Model, Question, Scores

RATE, MOMENTUM = 0.01, 0.9
SMALLEST = 1e-3  # a change in score that counts
REWARDS = {"scaled": (30.0, 1.0064), "raw": (300.0, 1.0035)}  # the weight of the area, at first and from step to step


@method(hides=True, random=True, quick={"steps": 25, "areas": "0.2"}, passes=3200, budget="steps")
def extremal_perturbation(
    model: Model,
    batch: Batch,
    *,
    areas: str = "0.025,0.05,0.1,0.2",
    steps: int = 800,
    reward: str = "scaled",
    output: str = "logit",
) -> Asking:
    """The sum of the masks that keep the score highest while all else is blurred, one for each share of the image."""
    one_of("reward", reward, REWARDS)
    one_of("output", output, SCORES)
    shares = _shares(areas)
    if steps < 1:
        raise ValueError(f"extremal_perturbation: steps={steps}, wanted 1 or more")
    images = batch.images
    levels, paint = pyramid(images), brush(images)
    blur, sharp = yield Scores(lambda ks: levels[[0, -1]][ks.start : ks.stop], 2, output)
    still = (sharp - blur).abs() <= SMALLEST
    gain = 10 / (sharp - blur).abs().clamp(min=SMALLEST) if reward == "scaled" else torch.ones_like(sharp)
    first, growth = REWARDS[reward]
    noise = [uniform(batch.seeds, f"extremal_perturbation {share}", *paint.nodes) for share in shares]
    grids = 1 - 1e-3 * torch.stack(noise).to(images.dtype)
    masks = yield from preserving(levels, paint, grids, shares, gain, [first * growth**t for t in range(steps)], output)
    kept = yield Scores(lambda ks: mixed(levels, masks[ks.start : ks.stop])[0], len(shares), output)
    reached = masks.mean((2, 3))  # (areas, N)
    missed = (reached - reached.new_tensor(shares)[:, None]).abs()
    maps = blurred(masks.sum(0), 0.09 * min(images.shape[2:]))
    facts = {f"area {share}": one for share, one in zip(shares, reached, strict=True)}
    facts |= {f"score {share}": one for share, one in zip(shares, kept, strict=True)}
    flags = {"flat_score": still, "loose": (missed > 0.05).any(0)}
    return Explained(maps.masked_fill(still[:, None, None], 0)[:, None], flags=flags, facts=facts)


def preserving(
    levels: Tensor,
    paint: Brush,
    grids: Tensor,
    areas: Sequence[float],
    gain: Tensor,
    weights: Sequence[float],
    output: str,
) -> Generator[Question, Tensor, Tensor]:
    """(areas, N, H, W): the masks of the highest score, one step for each weight of the area.

    Every other step sees the images in a mirror. The first takes its slope whole, as PyTorch's descent does.
    """
    shape = *grids.shape[:2], *levels.shape[3:]
    grids = grids.flatten(0, 1)  # (areas N, nodes, nodes)
    speed = torch.zeros_like(grids)
    for t, weight in enumerate(weights):
        masks = paint.masks(grids).view(shape)
        mix, change = mixed(levels, masks)
        slopes = yield from _apart(mix.flip(-1) if t % 2 == 0 else mix, output)
        slopes = slopes.flip(-1) if t % 2 == 0 else slopes
        away = 2 * (masks - sharpened(masks, areas)) / masks[0, 0].numel()
        pull = gain[:, None, None] * (slopes * change).sum(2) - weight * away
        slope = paint.slopes(grids, masks.flatten(0, 1), pull.flatten(0, 1))
        speed = MOMENTUM * speed + (1 - MOMENTUM) * slope if t else slope
        grids = (grids + RATE * speed).clamp(0, 1)
    return paint.masks(grids).view(shape)


def _apart(variants: Tensor, output: str) -> Generator[Question, Tensor, Tensor]:
    """(count, N, C, H, W): the gradient at each of (count, N, C, H, W) variants, which the answer would only sum."""
    slopes: list[Tensor] = []

    def keep(_: int, slope: Tensor) -> Tensor:
        slopes.append(slope)
        return slope.new_zeros(())

    yield Gradients(lambda ks: variants[ks.start : ks.stop], len(variants), keep, of=output)
    return torch.stack(slopes)


def _shares(areas: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(word) for word in areas.split(","))
    except ValueError:
        shares = ()
    if not shares or not all(0 < share < 1 for share in shares):
        raise ValueError(f"extremal_perturbation: areas='{areas}', wanted shares of the image like '0.05,0.1'")
    return shares
