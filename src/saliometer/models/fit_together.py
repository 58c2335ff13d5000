"""Trains several small networks of one shape at once, each from its own seed; goes on where a killed run was."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn import functional as F

from saliometer.files import put
from saliometer.models._recipe import Recipe
from saliometer.seeds import fork
from saliometer.types import Watch

LOOKED_AT = 2048  # images at a time, when nothing is trained
State = dict[str, Tensor]


Drawn = Callable[[int], tuple[Tensor, Tensor]]  # epoch -> images (n, C, H, W) and the labels of each network (R, n)


def fit_together(
    nets: Sequence[nn.Module],
    drawn: Drawn,
    count: int,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    enough: float = 2.0,
    checkpoint: Path | None = None,
    watch: Watch = lambda share, text: None,
) -> list[float]:
    """Train `nets` in place on the `count` images that are drawn for each epoch; each one's accuracy on the first.

    Every seed has its own order of images in every epoch; the rate falls to 0 along a cosine. With `enough` training
    ends after the epoch in which all are more accurate than that. The networks have no batch norm and no dropout.
    """
    stacked, _ = stack_module_state(list(nets))
    weights = {name: value.detach().requires_grad_() for name, value in stacked.items()}
    logits = _forward(nets[0].train(), len(nets))
    optimiser = torch.optim.Adam(weights.values(), lr=recipe.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.epochs * -(-count // recipe.batch))
    state = {"optimiser": optimiser, "schedule": schedule}
    told = asdict(recipe) | {"seeds": list(seeds), "enough": enough}
    device = next(iter(weights.values())).device
    epoch, reached = _resume(checkpoint, weights, state, told, device)
    rows = torch.arange(len(nets), device=device)[:, None]
    while epoch < recipe.epochs and not (reached and min(reached) > enough):
        images, labels = drawn(epoch)
        orders = torch.stack([_order(count, seed, epoch) for seed in seeds]).to(device)
        for place, chosen in enumerate(orders.split(recipe.batch, 1)):
            found = logits(weights, images[chosen])
            loss = F.cross_entropy(found.flatten(0, 1), labels[rows, chosen].flatten(), reduction="sum")
            optimiser.zero_grad(set_to_none=True)
            (loss / chosen.shape[1]).backward()  # each network's mean: they share no weights
            optimiser.step()
            schedule.step()
            watch((epoch + place * recipe.batch / count) / recipe.epochs, f"epoch {epoch + 1} of {recipe.epochs}")
        epoch += 1
        if enough <= 1:
            reached = _accuracy(logits, weights, images, labels)
        _keep(checkpoint, weights, state, told | {"epoch": epoch, "reached": reached})
    for place, net in enumerate(nets):
        net.load_state_dict({name: value[place].detach() for name, value in weights.items()})
        net.eval()
    return reached or _accuracy(logits, weights, *drawn(0))


Forward = Callable[[State, Tensor], Tensor]  # stacked weights, images (R, N, C, H, W) -> (R, N, classes)


def _forward(net: nn.Module, count: int) -> Forward:
    def one(weights: State, images: Tensor) -> Tensor:
        return functional_call(net, weights, (images,))  # type: ignore[no-any-return]

    if count > 1:
        return torch.vmap(one)
    return lambda weights, images: one({name: value[0] for name, value in weights.items()}, images[0])[None]


@torch.no_grad()
def _accuracy(logits: Forward, weights: State, images: Tensor, labels: Tensor) -> list[float]:
    right = torch.zeros(len(labels), dtype=torch.int64, device=images.device)
    for start in range(0, len(images), LOOKED_AT):
        part = images[start : start + LOOKED_AT].expand(len(labels), -1, -1, -1, -1)
        right += (logits(weights, part).argmax(2) == labels[:, start : start + LOOKED_AT]).sum(1)
    return (right.double() / len(images)).tolist()


def _order(count: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(fork(seed, "order", epoch)))


def _keep(path: Path | None, weights: State, state: dict[str, Any], told: dict[str, Any]) -> None:
    if path is None:
        return
    data = BytesIO()
    kept = {name: part.state_dict() for name, part in state.items()}
    torch.save(kept | {"weights": {name: value.detach() for name, value in weights.items()}, "told": told}, data)
    put(path, data.getvalue())


def _resume(
    path: Path | None, weights: State, state: dict[str, Any], told: dict[str, Any], device: torch.device
) -> tuple[int, list[float]]:
    if path is None or not path.exists():
        return 0, []
    kept = torch.load(path, map_location=device, weights_only=True)
    if any(kept["told"].get(name) != value for name, value in told.items()):
        return 0, []
    for name, part in state.items():
        part.load_state_dict(kept[name])
    with torch.no_grad():
        for name, value in weights.items():
            value.copy_(kept["weights"][name])
    return kept["told"]["epoch"], kept["told"]["reached"]
