"""The values that pass between stages: task -> model -> method -> map -> metric -> result."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor, nn

from saliometer.graph import Network
from saliometer.registry import Spec

PRIMARY, SECONDARY, NEITHER, ABSENT = 1, 2, 0, -1  # the roles an object can play in one image's label


@dataclass(frozen=True, eq=False)
class Batch:
    """What a method sees: never the truth."""

    images: Tensor  # (N, C, H, W) float32, as the model takes them
    targets: Tensor  # (N,) int64, the class each map explains
    seeds: Tensor  # (N,) int64, one per image, so that its noise does not depend on its neighbours
    references: Tensor | None = None  # (R, C, H, W) other images of the data, for methods that compare with them

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, part: slice) -> "Batch":
        return Batch(self.images[part], self.targets[part], self.seeds[part], self.references)


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
    unlabelled: Tensor | None = None  # (N, H, W) bool, pixels of which nobody says whether they belong to an object

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
    mean: tuple[float, ...] = (0.0,)  # with std: input = (pixel - mean) / std
    std: tuple[float, ...] = (1.0,)
    low: float = 0.0  # the smallest and largest value a pixel can take
    high: float = 1.0
    middle_layer: str = ""  # one half way, for methods that want no summary yet
    link: str = "softmax"  # from logits to probabilities: 'softmax' over classes or 'sigmoid' for each

    def logits(self, images: Tensor) -> Tensor:
        """(N, classes). One logit z means two classes, "no" with score -z and "yes" with score z."""
        logits: Tensor = self.net(images)
        one = isinstance(logits, Tensor) and logits.ndim == 2 and logits.shape[1] == 1
        return torch.cat((-logits, logits), 1) if one else logits

    def pixels(self, images: Tensor) -> Tensor:
        """Inputs of the model as pixel values in [0, 1]."""
        mean, std = (self.channels(images, values) for values in (self.mean, self.std))
        return images * std + mean

    def bounds(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and largest value of each channel as the model takes it, (1, C or 1, 1, 1)."""
        mean, std = (self.channels(images, values) for values in (self.mean, self.std))
        return (self.low - mean) / std, (self.high - mean) / std

    @staticmethod
    def channels(images: Tensor, values: tuple[float, ...]) -> Tensor:
        return images.new_tensor(values).view(1, -1, 1, 1)


@dataclass(frozen=True, eq=False)
class Subject:
    """What a metric may know beside maps and samples: whose score it is, and whose maps."""

    model: Model
    method: Spec
    unit: str = "map"  # of an attribution: 'gradient' per input value, 'contribution' to the score, 'map' for neither


# Questions to the model. The engine packs images x copies into full batches; `ks` says which copies are wanted.
# A `key` says in words what is asked: two questions of one key are the same, and the engine answers them once.

Variants = Callable[[range], Tensor]  # ks -> altered copies of the batch, (len(ks), N, C, H, W); pure


def each(variant: Callable[[int], Tensor]) -> Variants:
    """For copies that are made one at a time: k -> (N, C, H, W)."""
    return lambda ks: torch.stack([variant(k) for k in ks]) if len(ks) > 1 else variant(ks[0])[None]


def unaltered(images: Tensor) -> Variants:
    """The images themselves."""
    return lambda ks: images.expand(len(ks), *images.shape)


@dataclass(frozen=True, eq=False)
class At:
    """A place inside the network: variants are what `layer` gives out, instead of what it gives out on the images."""

    images: Tensor
    layer: str


@dataclass(frozen=True, eq=False)
class Logits:
    """A question answered as (count, N, classes)."""

    variants: Variants
    count: int = 1
    key: str = ""


SCORES = ("logit", "probability", "log_probability", "log_odds")


@dataclass(frozen=True, eq=False)
class Scores:
    """A question answered as (count, N): the score of each image's target."""

    variants: Variants
    count: int = 1
    of: str = "logit"  # one of SCORES
    at: At | None = None
    key: str = ""


def whole(_: int, gradient: Tensor) -> Tensor:
    return gradient


@dataclass(frozen=True, eq=False)
class Gradients:
    """A question answered as the sum over k of `take(k, gradient at variant k)`, (N, C, H, W)."""

    variants: Variants
    count: int = 1
    take: Callable[[int, Tensor], Tensor] = whole
    of: str = "logit"
    at: At | None = None


@dataclass(frozen=True, eq=False)
class Features:
    """A question answered as (2, N, k, h, w): a layer's activations on the images, and the score's gradient there."""

    images: Tensor
    layer: str


@dataclass(frozen=True, eq=False)
class Activations:
    """A question answered as (N, ...): what a layer gives out on any images, however many; no backward pass."""

    images: Tensor
    layer: str


@dataclass(frozen=True, eq=False)
class Walk:
    """A question answered by a walk over the network's operations, (N, ...)."""

    images: Tensor
    walk: Callable[[Network, slice], Tensor]  # is told which rows of the batch it is to walk for
    passes: int = 1  # what it costs for one image; those after the first are told to `network.tick`; 0 only looks


@dataclass(frozen=True, eq=False)
class Maps:
    """A metric's question to the method itself, answered as (count, N): what `take` makes of the variants' maps."""

    variants: Variants
    count: int
    take: Callable[[Tensor], Tensor]  # of maps (ks, N, C, H, W); gives (ks, N)
    key: str = ""


# What a method may say beside its maps, and a metric beside its value.


@dataclass(frozen=True, eq=False)
class Explained:
    """Maps, how well they keep what the method promises, and what is odd about them."""

    maps: Tensor  # (N, C or 1, H, W)
    residual: Tensor | None = None  # (N,) how far the maps' sum is from what the method promises
    promised: Tensor | None = None  # (N,) that sum
    flags: Mapping[str, Tensor] = field(default_factory=dict)  # word -> (N,) bool
    facts: Mapping[str, Tensor] = field(default_factory=dict)  # word -> (N,), such as a fit's R^2


@dataclass(frozen=True, eq=False)
class Scored:
    """A metric's value and its parts, and where they are undefined."""

    values: Tensor  # (N,) float64
    parts: Mapping[str, Tensor] = field(default_factory=dict)  # name -> (N,), as the metric's facts list them
    invalid: Mapping[str, Tensor] = field(default_factory=dict)  # reason -> (N,) bool; values and parts become NaN


Watch = Callable[[float, str], None]  # told the share done and what is running
Question = Logits | Scores | Gradients | Features | Activations | Walk | Maps
Asking = Generator[Question, Tensor, Tensor | Explained]  # what a method that yields its questions is
Measuring = Generator[Question, Tensor, Tensor | Scored]  # and a metric
