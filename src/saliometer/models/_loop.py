"""Epoch after epoch: steps of an optimiser over batches, kept in a file, so that a killed run goes on where it was."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliometer.files import put
from saliometer.seeds import scoped
from saliometer.types import Watch

Batches = Callable[[int], Iterator[tuple[Tensor, Tensor]]]  # epoch -> which images, and the images


@dataclass(frozen=True, eq=False)
class Learning:
    """How a network learns from a batch."""

    optimiser: torch.optim.Optimizer
    loss: Callable[[Tensor, Tensor], Tensor]  # of logits and labels
    schedule: torch.optim.lr_scheduler.LRScheduler | None = None  # takes a step with every batch
    clip: float = 0.0  # where gradients are cut off, value by value; 0 for nowhere
    precision: Callable[[], AbstractContextManager[Any]] = nullcontext  # around the forward pass

    def step(self, net: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
        """The loss, once the network has learnt from it."""
        with self.precision():
            logits = net(images)
        loss = self.loss(logits.float(), labels)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_value_(net.parameters(), self.clip)
        self.optimiser.step()
        if self.schedule is not None:
            self.schedule.step()
        return loss.detach()


@dataclass(frozen=True, eq=False)
class Kept:
    """The file a run goes on from; `key` says of which run it is, `parts` are what else changes as it goes."""

    path: Path | None
    key: dict[str, Any]
    parts: dict[str, Any] = field(default_factory=dict)  # with state_dict and load_state_dict
    every: float = 0.0  # seconds between two writings, at least; the last epoch is written in any case

    def resume(self, state: dict[str, Any], device: torch.device) -> tuple[int, float]:
        if self.path is None or not self.path.exists():
            return 0, float("nan")
        kept = torch.load(self.path, map_location=device, weights_only=True)
        if any(kept.get(name) != value for name, value in self.key.items()):
            return 0, float("nan")
        for name, part in state.items():
            part.load_state_dict(kept[name])
        return kept["epoch"], kept["loss"]

    def write(self, state: dict[str, Any], epoch: int, loss: float) -> None:
        if self.path is None:
            return
        kept = {name: part.state_dict() for name, part in state.items()}
        data = BytesIO()
        torch.save(kept | self.key | {"epoch": epoch, "loss": loss}, data)
        put(self.path, data.getvalue())


def loop(
    net: nn.Module, batches: Batches, labels: Tensor, learning: Learning, epochs: int, seed: int, kept: Kept, *,
    ended: Callable[[int, float], None] = lambda epoch, loss: None, enough: Callable[[], bool] = lambda: False,
    watch: Watch = lambda share, text: None,
) -> float:  # fmt: skip
    """Train `net` in place and return the last epoch's loss.

    `ended` is told of every epoch, counted from 1; it was the last one if `enough` says so.
    """
    device, count = labels.device, len(labels)
    state: dict[str, Any] = {"net": net, "optimiser": learning.optimiser}
    state |= ({"schedule": learning.schedule} if learning.schedule is not None else {}) | kept.parts
    epoch, mean_loss = kept.resume(state, device)
    written = time.monotonic()
    while epoch < epochs and not (epoch and enough()):
        net.train()
        total, done = torch.zeros((), device=device), count * epoch
        with scoped(seed, "dropout", epoch):  # which knows only the global generator
            for chosen, images in batches(epoch):
                total += learning.step(net, images, labels[chosen]) * len(chosen)
                done += len(chosen)
                watch(done / (count * epochs), f"epoch {epoch + 1}")
        mean_loss = total.item() / count
        epoch += 1
        ended(epoch, mean_loss)
        if epoch == epochs or time.monotonic() - written >= kept.every:
            kept.write(state, epoch, mean_loss)
            written = time.monotonic()
    net.eval()
    return mean_loss
