"""Trains a classifier on a fixed set of generated images, repeatably, and goes on where a killed run was."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.files import put
from saliometer.models._recipe import Recipe as Recipe
from saliometer.seeds import fork, scoped
from saliometer.types import Watch

GENERATED_TOGETHER = 4
LOSSES = ("cross_entropy", "clipped")
Altered = Callable[[Tensor, Tensor, Tensor, int], Tensor]  # images, their labels and numbers, epoch -> images


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

    The same images come again every epoch in an order drawn from (seed, epoch); the rate falls to 0 along a cosine.
    Training ends early after an epoch of which `enough` says so.
    """
    device, count = labels.device, len(labels)
    optimiser = torch.optim.Adam(net.parameters(), lr=recipe.rate)
    steps = recipe.epochs * -(-count // recipe.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    state = {"net": net, "optimiser": optimiser, "schedule": schedule}
    epoch, mean_loss = _resume(checkpoint, state, recipe, seed, device)
    loss_of = clipped_loss if recipe.loss == "clipped" else F.cross_entropy
    while epoch < recipe.epochs and not (epoch and enough()):
        net.train()
        order = torch.randperm(count, generator=torch.Generator().manual_seed(fork(seed, "order", epoch))).to(device)
        total, done = torch.zeros((), device=device), count * epoch
        with scoped(seed, "dropout", epoch):  # which knows only the global generator
            for chosen, images in _batches(images_of, order, recipe.batch):
                images = altered(images, labels[chosen], chosen, epoch) if altered else images
                loss = loss_of(net(images), labels[chosen])
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
                schedule.step()
                total += loss.detach() * len(chosen)
                done += len(chosen)
                watch(done / (count * recipe.epochs), f"epoch {epoch + 1}")
        mean_loss = total.item() / count
        epoch += 1
        _keep(checkpoint, state, recipe, seed, epoch, mean_loss)
    net.eval()
    return mean_loss


def _batches(images_of: Callable[[Tensor], Tensor], order: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Images are made several batches at a time: on a GPU that costs little more than making one."""
    for block in order.split(GENERATED_TOGETHER * size):
        yield from zip(block.split(size), images_of(block).split(size), strict=True)


def _keep(path: Path | None, state: dict[str, Any], recipe: Recipe, seed: int, epoch: int, loss: float) -> None:
    if path is None:
        return
    kept = {name: part.state_dict() for name, part in state.items()}
    data = BytesIO()
    torch.save(kept | {"recipe": asdict(recipe), "seed": seed, "epoch": epoch, "loss": loss}, data)
    put(path, data.getvalue())


def _resume(
    path: Path | None, state: dict[str, Any], recipe: Recipe, seed: int, device: torch.device
) -> tuple[int, float]:
    if path is None or not path.exists():
        return 0, float("nan")
    kept = torch.load(path, map_location=device, weights_only=True)
    if kept["recipe"] != asdict(recipe) or kept["seed"] != seed:
        return 0, float("nan")
    for name, part in state.items():
        part.load_state_dict(kept[name])
    return kept["epoch"], kept["loss"]
