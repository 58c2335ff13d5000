"""Trains several small networks of one shape at once, each from its own seed; goes on where a killed run was."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state
from torch.nn import functional as F

from saliometer.models._loop import Kept
from saliometer.models._recipe import Recipe
from saliometer.seeds import fork
from saliometer.types import Watch

LOOKED_AT = 2048  # images at a time, when nothing is trained
Drawn = Callable[[int], tuple[Tensor, Tensor]]  # epoch -> images (n, C, H, W) and the labels of each network (R, n)


class Together(nn.Module):
    """Networks of one shape as one: images (R, N, C, H, W) to logits (R, N, classes). No batch norm, no dropout."""

    def __init__(self, nets: Sequence[nn.Module]) -> None:
        super().__init__()
        stacked, _ = stack_module_state(list(nets))
        self.names, self.shape = list(stacked), (nets[0],)  # in a tuple its own weights are not counted
        self.weights = nn.ParameterList(value.detach().clone() for value in stacked.values())

    def forward(self, images: Tensor) -> Tensor:
        def one(weights: dict[str, Tensor], images: Tensor) -> Tensor:
            return functional_call(self.shape[0], weights, (images,))  # type: ignore[no-any-return]

        held = dict(zip(self.names, self.weights, strict=True))
        if len(images) > 1:
            return torch.vmap(one)(held, images)
        return one({name: value[0] for name, value in held.items()}, images[0])[None]

    def hand_back(self, nets: Sequence[nn.Module]) -> None:
        for place, net in enumerate(nets):
            net.load_state_dict({n: v[place].detach() for n, v in zip(self.names, self.weights, strict=True)})
            net.eval()

    @torch.no_grad()
    def accuracy(self, images: Tensor, labels: Tensor) -> list[float]:
        """Of each on images (n, C, H, W) with labels (R, n)."""
        parts = zip(images.split(LOOKED_AT), labels.split(LOOKED_AT, 1), strict=True)
        right = [(self(some.expand(len(own), *some.shape)).argmax(2) == own).sum(1) for some, own in parts]
        return (torch.stack(right).sum(0).double() / len(images)).tolist()


def fit_together(
    nets: Sequence[nn.Module],
    drawn: Drawn,
    count: int,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    enough: float = 2.0,
    checkpoint: Path | None = None,
    every: float = 0.0,
    watch: Watch = lambda share, text: None,
) -> list[float]:
    """Train `nets` in place on the `count` images that are drawn for each epoch; each one's accuracy on the first.

    Every seed has its own order of images in every epoch. With `enough` training
    ends after the epoch in which all are more accurate than that. The checkpoint is written after epochs, `every` so
    many seconds at the most: that of ten networks may be larger than what an epoch takes to compute.
    """
    together = Together(nets)
    optimiser = torch.optim.Adam(together.parameters(), lr=recipe.rate)
    schedule = recipe.rates(optimiser, count)
    state = {"net": together, "optimiser": optimiser, "schedule": schedule}
    kept = Kept(checkpoint, {"recipe": asdict(recipe), "seeds": list(seeds), "enough": enough})
    device = together.weights[0].device
    epoch, _ = kept.resume(state, device)
    rows, written = torch.arange(len(nets), device=device)[:, None], time.monotonic()
    while epoch < recipe.epochs and not (epoch and enough <= 1 and min(together.accuracy(*drawn(epoch - 1))) > enough):
        images, labels = drawn(epoch)
        orders = torch.stack([_order(count, seed, epoch) for seed in seeds]).to(device)
        for place, chosen in enumerate(orders.split(recipe.batch, 1)):
            logits, wanted = together(images[chosen]), labels[rows, chosen]
            loss = F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), reduction="sum") / chosen.shape[1]
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # the sum of every network's mean: they share no weights
            optimiser.step()
            schedule.step()
            watch((epoch + place * recipe.batch / count) / recipe.epochs, f"epoch {epoch + 1} of {recipe.epochs}")
        epoch += 1
        if time.monotonic() - written >= every:
            kept.write(state, epoch, loss.item())
            written = time.monotonic()
    together.hand_back(nets)
    return together.accuracy(*drawn(0))


def _order(count: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(count, generator=torch.Generator().manual_seed(fork(seed, "order", epoch)))
