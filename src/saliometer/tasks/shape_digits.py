"""Shape digits: a digit with a rectangle, an empty circle or nothing, labelled by either (Yona & Greenfeld, 2021).

The same images serve both labellings, so that what is evidence for one network is a distraction for the other.
"""

from dataclasses import replace

import torch
from torch import Tensor

from saliometer.registry import one_of, task
from saliometer.seeds import uniform
from saliometer.tasks._bank import DIGIT
from saliometer.tasks._digits import INKED, boxes, drawn
from saliometer.types import ABSENT, PRIMARY, SECONDARY, Batch, Samples

VERSION = "shape_digits-1"
CLASSES = {"shape": 3, "digit": 10}
SETTINGS = tuple(CLASSES)
NOTHING, RECTANGLE, CIRCLE = range(3)
CHANCE = 1 / 3  # that a digit stays as it is
SIDES, RADII, LINE = (5, 10), (4.0, 7.0), 1.5  # pixels
TRIES = 100


@task(settings=SETTINGS, classes=CLASSES, quick={"count": 60})
def shape_digits(
    setting: str, *, split: str = "test", count: int = 200, start: int = 0, seed: int = 0, source: str = "sklearn",
    jitter: int = 0, faintest: float = 1.0, device: str = "cpu",
) -> Samples:  # fmt: skip
    """A digit with nothing (0), a rectangle (1) or an empty circle (2); `shape` or `digit` is the label.

    Each digit's ink is dimmed to between `faintest` and all of it, never the shape's.
    """
    one_of("setting", setting, SETTINGS)
    indices = torch.arange(start, start + count, device=device)
    ink, shapes, digits, seeds = layers(source, split, indices, seed, jitter)
    kinds = indices // 10 % 3
    both = torch.stack((ink > INKED, shapes > INKED), 1)  # (N, 2, 28, 28): the digit, the shape
    overlap = both.all(1)
    masks = both & ~overlap[:, None]
    ids = tuple(f"{split}-{i}" for i in indices.tolist())
    buckets = tuple(str(number) for number in (1 + digits + 10 * kinds).tolist())
    dimmed = ink if faintest == 1 else ink * (1 - (1 - faintest) * uniform(seeds, "faint", 1)[..., None])
    batch = Batch(torch.maximum(dimmed, shapes)[:, None], digits, seeds)
    roles = torch.zeros(count, 2, dtype=torch.int8, device=device)
    return seen_as(Samples(batch, ids, digits, masks, boxes(masks), roles, buckets, unlabelled=overlap), setting)


def layers(
    source: str, split: str, indices: Tensor, seed: int, jitter: int = 0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(N, 28, 28) the digits and the shapes of a stream, an image being the larger of both; (N,) digits and seeds."""
    ink, digits, seeds = drawn(source, split, indices, seed, jitter)
    return ink, placed(indices // 10 % 3, seeds, ink > INKED), digits, seeds


def erased(
    setting: str, role: int, *, split: str = "test", count: int = 200, start: int = 0, seed: int = 0,
    source: str = "sklearn", device: str = "cpu",
) -> Tensor:  # fmt: skip
    """The images without the shape or without the digit, whichever plays that role: drawn anew, so nothing is left."""
    one_of("setting", setting, SETTINGS)
    ink, shapes, _, _ = layers(source, split, torch.arange(start, start + count, device=device), seed)
    without_shape = (setting == "shape") == (role == PRIMARY)
    return (ink if without_shape else shapes)[:, None]


def seen_as(samples: Samples, setting: str) -> Samples:
    """The same images as the other labelling reads them: its labels, and what decides there."""
    numbers = torch.tensor([int(bucket) - 1 for bucket in samples.buckets], device=samples.labels.device)
    kinds = numbers // 10
    by_shape = one_of("setting", setting, SETTINGS) == "shape"
    labels = kinds if by_shape else numbers % 10
    roles = torch.tensor([[SECONDARY, PRIMARY] if by_shape else [PRIMARY, SECONDARY]], dtype=torch.int8)
    roles = roles.to(kinds.device).repeat(len(samples), 1)
    roles[kinds == NOTHING, 1] = ABSENT
    return replace(samples, batch=replace(samples.batch, targets=labels), labels=labels, roles=roles)


def placed(kinds: Tensor, seeds: Tensor, digits: Tensor) -> Tensor:
    """(N, 28, 28) the shapes' opacity: anywhere inside, so long as shape and digit each keep pixels of their own."""
    shapes = _shapes(kinds, seeds, 0)
    pending = _hidden(kinds, shapes, digits).nonzero()[:, 0]
    for attempt in range(1, TRIES):
        if not len(pending):
            return shapes
        shapes[pending] = _shapes(kinds[pending], seeds[pending], attempt)
        pending = pending[_hidden(kinds[pending], shapes[pending], digits[pending])]
    raise ValueError(f"after {TRIES} draws a shape still covers its digit or lies within it: wanted thinner digits")


def _hidden(kinds: Tensor, shapes: Tensor, digits: Tensor) -> Tensor:
    own = [(one & ~other).flatten(1).any(1) for one, other in ((shapes > INKED, digits), (digits, shapes > INKED))]
    return ~(own[0] & own[1]) & (kinds != NOTHING)


def _shapes(kinds: Tensor, seeds: Tensor, attempt: int) -> Tensor:
    """Sides are 5 to 10 whole pixels; a radius is 4 to 7, its line 1.5 wide with soft edges."""
    draws = uniform(seeds, f"shape {attempt}", 4)
    span = torch.arange(DIGIT, device=seeds.device)
    sides = (SIDES[0] + draws[:, :2] * (SIDES[1] - SIDES[0] + 1)).long()  # (N, 2) rows and columns
    corners = (draws[:, 2:] * (DIGIT - sides + 1)).long()
    inside = (span >= corners[..., None]) & (span < (corners + sides)[..., None])  # (N, 2, 28)
    rectangles = inside[:, 0, :, None] & inside[:, 1, None, :]
    radii = RADII[0] + draws[:, 0] * (RADII[1] - RADII[0])
    edge = radii[:, None] + 1  # the line's outer edge stays inside
    centres = edge + draws[:, 2:] * (DIGIT - 1 - 2 * edge)
    away = (span - centres[..., None]).square()  # (N, 2, 28)
    distance = (away[:, 0, :, None] + away[:, 1, None, :]).sqrt()
    circles = (LINE / 2 + 0.5 - (distance - radii[:, None, None]).abs()).clamp(0, 1)
    chosen = kinds[:, None, None]
    return rectangles.float().where(chosen == RECTANGLE, circles).where(chosen != NOTHING, 0.0)
