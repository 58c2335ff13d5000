"""A linear model on small images, whose right answers follow from its weights alone."""

import torch
from torch import Tensor

from battery_toys import photos
from saliometer.types import Batch, Model, Samples
from toys import Formula, model_of

SHAPE = 3, 8, 8


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def weights(shape: tuple[int, ...] = SHAPE, seed: int = 5) -> Tensor:
    return some(*shape, seed=seed)


def linear(w: Tensor, **scale: tuple[float, ...]) -> Model:
    """f = w . x for class 0, -f for class 1."""
    return model_of(Formula(lambda x: x @ w.flatten().to(x)), **scale)


def pictures(
    count: int = 4, shape: tuple[int, ...] = SHAPE, edge: float = 0.1, seed: int = 7, first: int = 100
) -> Samples:
    """Pixels at least `edge` inside [0, 1]."""
    images = torch.rand(count, *shape, generator=torch.Generator().manual_seed(seed))
    return photos(edge + (1 - 2 * edge) * images, first=first)


def one(samples: Samples, place: int) -> Samples:
    """One image on its own, with its own seed."""
    batch = samples.batch
    alone = photos(batch.images[place : place + 1], batch.targets[place : place + 1])
    seeds = batch.seeds[place : place + 1]
    return Samples(
        Batch(alone.batch.images, alone.batch.targets, seeds, batch.references), alone.ids, alone.labels, alone.objects,
        alone.boxes, alone.roles, alone.buckets,
    )  # fmt: skip
