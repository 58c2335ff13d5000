"""The values that pass between stages: task -> model -> method -> map -> metric -> result."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn

PRIMARY, SECONDARY, NEITHER, ABSENT = 1, 2, 0, -1  # the roles an object can play in one image's label


@dataclass(frozen=True, eq=False)
class Batch:
    """What a method sees: never the truth."""

    images: Tensor  # (N, C, H, W) float32, as the model takes them
    targets: Tensor  # (N,) int64, the class each map explains
    seeds: Tensor  # (N,) int64, one per image, so that its noise does not depend on its neighbours

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, part: slice) -> "Batch":
        return Batch(self.images[part], self.targets[part], self.seeds[part])


@dataclass(frozen=True, eq=False)
class Samples:
    """What a task yields and a metric sees; `batch.targets` are the true labels until the engine sets them."""

    batch: Batch
    ids: tuple[str, ...]
    labels: Tensor  # (N,) int64
    objects: Tensor  # (N, K, H, W) bool, the pixels of each object (its ink)
    boxes: Tensor  # (N, K, 4) int64: row, row end, column, column end; half open, all 0 where absent
    roles: Tensor  # (N, K) int8: PRIMARY, SECONDARY, NEITHER, ABSENT
    buckets: tuple[str, ...]  # a label for each sample, to group rows by

    def __len__(self) -> int:
        return len(self.ids)

    def explaining(self, targets: Tensor) -> "Samples":
        return replace(self, batch=replace(self.batch, targets=targets))

    @cached_property
    def boxed(self) -> Tensor:
        """(N, K, H, W) bool: each object's bounding box, filled."""
        height, width = self.objects.shape[-2:]
        row = torch.arange(height, device=self.boxes.device)
        column = torch.arange(width, device=self.boxes.device)
        top, bottom, left, right = self.boxes[..., None].unbind(2)  # each (N, K, 1)
        inside_rows = (row >= top) & (row < bottom)
        inside_columns = (column >= left) & (column < right)
        return inside_rows[..., :, None] & inside_columns[..., None, :]

    def parts(self, role: int, region: str) -> Tensor:
        """(N, K, H, W) bool: the pixels of each object of one role; `region` is 'box' or 'ink'."""
        return (self.boxed if region == "box" else self.objects) & (self.roles == role)[..., None, None]

    def region(self, role: int, region: str) -> Tensor:
        """(N, H, W) bool: the union of all objects of one role."""
        if (role, region) not in self._regions:
            self._regions[role, region] = self.parts(role, region).any(1)
        return self._regions[role, region]

    @cached_property
    def _regions(self) -> dict[tuple[int, str], Tensor]:
        return {}


@dataclass(frozen=True, eq=False)
class Model:
    """A classifier in eval mode, its parameters frozen."""

    name: str
    net: nn.Module
    cam_layer: str  # the layer that CAM methods read, as named_modules() calls it
    fingerprint: str  # the SHA-256 of its weights, or empty where nobody needs it
    mean: tuple[float, ...] = (0.0,)  # with std, low, high: from pixels in [0, 1] to the model's input and back
    std: tuple[float, ...] = (1.0,)
    low: float = 0.0  # the smallest and largest value an input can take
    high: float = 1.0

    def logits(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net(images)
        return logits

    def pixels(self, images: Tensor) -> Tensor:
        """Inputs of the model as pixel values in [0, 1]."""
        mean, std = (images.new_tensor(values).view(1, -1, 1, 1) for values in (self.mean, self.std))
        return images * std + mean


@dataclass(frozen=True, eq=False)
class Logits:
    """A question to the model, answered as (count, N, classes)."""

    variant: Callable[[int], Tensor]  # k -> the k-th altered copy of the batch, (N, C, H, W); pure
    count: int = 1


def whole(_: int, gradient: Tensor) -> Tensor:
    return gradient


@dataclass(frozen=True, eq=False)
class Gradients:
    """A question answered as the sum over k of `take(k, gradient at variant(k))`, (N, C, H, W)."""

    variant: Callable[[int], Tensor]
    count: int = 1
    take: Callable[[int, Tensor], Tensor] = whole


@dataclass(frozen=True, eq=False)
class Features:
    """A question answered as (2, N, k, h, w): a layer's activations on the images, and the score's gradient there."""

    images: Tensor
    layer: str


Watch = Callable[[float, str], None]  # told the share done and what is running
Question = Logits | Gradients | Features
Asking = Generator[Question, Tensor, Tensor]  # what a method or metric that yields its questions is
