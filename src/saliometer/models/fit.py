"""Trains a classifier on a fixed set of generated images, repeatably, and goes on where a killed run was."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.models._loop import Kept, Learning, loop
from saliometer.models._recipe import CONSTANT as CONSTANT
from saliometer.models._recipe import COSINE as COSINE
from saliometer.models._recipe import Recipe as Recipe
from saliometer.seeds import fork
from saliometer.types import Watch

GENERATED_TOGETHER = 4
LOSSES = ("cross_entropy", "clipped")
Altered = Callable[[Tensor, Tensor, Tensor, float], Tensor]  # images, labels, numbers, epochs done so far -> images


def clipped_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Keras' binary cross-entropy on linear outputs: they are clipped into (0, 1) and read as probabilities."""
    # float32 cannot hold 1 - 1e-7 exactly; Keras of that time clips in float32 as well
    probabilities = logits.clamp(1e-7, 1 - 1e-7)
    return F.binary_cross_entropy(probabilities, F.one_hot(labels, logits.shape[1]).to(logits.dtype))


def fit(
    net: nn.Module,
    images_of: Callable[[Tensor], Tensor],
    labels: Tensor,
    recipe: Recipe,
    seed: int,
    *,
    altered: Altered | None = None,
    enough: Callable[[], bool] = lambda: False,
    checkpoint: Path | None = None,
    watch: Watch = lambda share, text: None,
) -> float:
    """Train `net` in place on images_of(0..n-1), `altered` where that is given, and return the last epoch's loss.

    The same images come again every epoch in an order drawn from (seed, epoch). Training ends early after an
    epoch of which `enough` says so.
    """
    count = len(labels)
    optimiser = torch.optim.Adam(net.parameters(), lr=recipe.rate)
    loss_of = clipped_loss if recipe.loss == "clipped" else F.cross_entropy

    def batches(epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(fork(seed, "order", epoch)))
        done = float(epoch)
        for chosen, images in _batches(images_of, order.to(labels.device), recipe.batch):
            yield chosen, altered(images, labels[chosen], chosen, done) if altered else images
            done += len(chosen) / count

    kept = Kept(checkpoint, {"recipe": asdict(recipe), "seed": seed})
    learning = Learning(optimiser, loss_of, recipe.rates(optimiser, count))
    return loop(net, batches, labels, learning, recipe.epochs, seed, kept, enough=enough, watch=watch)


def _batches(images_of: Callable[[Tensor], Tensor], order: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Images are made several batches at a time: on a GPU that costs little more than making one."""
    for block in order.split(GENERATED_TOGETHER * size):
        yield from zip(block.split(size), images_of(block).split(size), strict=True)
