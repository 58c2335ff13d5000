"""Labelled pictures as a network takes them: 8-bit levels on the device, enlarged and normalised batch by batch."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.cose.training import blocks, jittered, transformed
from saliometer.images import Preprocessing

ROOM = 0.4  # of a GPU's free memory that pictures may take; else they stay in the computer's and come in batches
PIXELS = {"cpu": 1 << 18, "cuda": 1 << 22}  # that go through a network at once when it is only tested


def placed(levels: Tensor, resize: int, side: int) -> Tensor:
    """(N, C, side, side) uint8: resized as by PIL, bilinear, to a level or so, and the middle cut out."""
    if levels.shape[-1] == side:
        return levels
    if levels.shape[-1] != resize:
        smaller = resize < levels.shape[-1]
        grown = F.interpolate(levels.float(), (resize, resize), mode="bilinear", antialias=smaller)
        levels = grown.round_().clamp_(0, 255).to(torch.uint8)
    start = round((resize - side) / 2)
    return levels[..., start : start + side, start : start + side]


@dataclass(frozen=True, eq=False)
class Shown:
    """One part of a data set, for a network of one side."""

    levels: Tensor  # (N, 3, H, W) uint8, where there is room
    labels: Tensor  # (N,) int64 on the device
    mean: Tensor  # (1, 3, 1, 1) on the device
    std: Tensor
    resize: int
    side: int
    memory_format: torch.memory_format

    @classmethod
    def on(
        cls,
        device: torch.device,
        levels: Tensor,
        labels: Tensor,
        way: Preprocessing,
        memory_format: torch.memory_format,
    ) -> "Shown":
        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
        fits = device.type != "cuda" or levels.numel() < ROOM * free
        mean, std = (torch.tensor(values, device=device).view(1, -1, 1, 1) for values in (way.mean, way.std))
        held = levels.to(device) if fits else levels
        return cls(held, labels.to(device), mean, std, way.resize, way.crop, memory_format)

    def every(self, step: int) -> "Shown":
        """Only every so manieth."""
        return replace(self, levels=self.levels[::step], labels=self.labels[::step])

    def at(self, numbers: Tensor | slice) -> Tensor:
        """(N, 3, side, side) uint8 on the device."""
        where = numbers.to(self.levels.device) if isinstance(numbers, Tensor) else numbers
        return placed(self.levels[where].to(self.labels.device), self.resize, self.side)

    def inputs(self, levels: Tensor) -> Tensor:
        """As the network takes them."""
        return levels.float().div_(255).sub_(self.mean).div_(self.std).contiguous(memory_format=self.memory_format)

    def batches(self, epoch: int, size: int, seed: int, jitter: bool) -> Iterator[tuple[Tensor, Tensor]]:
        """One epoch: which images, and the images, each under an operation of its own."""
        for block in blocks(seed, epoch, len(self.labels), size, self.labels.device):
            levels = transformed(self.at(block.by_operation), block)
            if jitter:
                levels = jittered(levels, seed, epoch, block.order)
            for chosen, part in zip(block.order.split(size), levels.split(size), strict=True):
                yield chosen, self.inputs(part)

    def measured(self, net: nn.Module, precision: AbstractContextManager[Any] | None = None) -> tuple[float, float]:
        """Mean loss and accuracy of a network in eval mode, on the pictures as they are."""
        size = max(1, PIXELS[self.labels.device.type] // self.side**2)
        total = torch.zeros(2, dtype=torch.float64, device=self.labels.device)
        net.eval()
        with torch.no_grad(), precision or nullcontext():
            for start in range(0, len(self.labels), size):
                part = slice(start, start + size)
                logits = net(self.inputs(self.at(part))).float()
                loss = F.cross_entropy(logits, self.labels[part], reduction="sum")
                total += torch.stack((loss, (logits.argmax(1) == self.labels[part]).sum()))
        loss, right = (total / len(self.labels)).tolist()
        return loss, right
