"""Images to train on, as whole tensors: a training part and a test part with labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import torch
from torch import Tensor

from saliometer.images.levels import levels_of
from saliometer.images.parts import Parts, parts_of
from saliometer.images.table import first_names

SIDE = 224  # of pictures of several sizes, where nobody says


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled pictures of 8 bits, all of one size."""

    name: str  # what rows and cards call it
    train: Tensor  # (N, 3, S, S) uint8
    train_labels: Tensor  # (N,) int64, 0 to K-1
    test: Tensor  # (M, 3, S, S) uint8
    test_labels: Tensor  # (M,) int64
    classes: tuple[str, ...]  # K names
    resized: int = 0  # the shorter side before the middle was cut out; 0 where pictures are as they were
    notes: Sequence[str] = ()  # what else is to be known of them, in words

    def __post_init__(self) -> None:
        checked_labels(self.train_labels, self.test_labels, self.classes, self.name)
        for part, labels in ((self.train, self.train_labels), (self.test, self.test_labels)):
            shaped = part.ndim == 4 and part.shape[1] == 3 and part.shape[2] == part.shape[3]
            if part.dtype != torch.uint8 or not shaped or len(part) != len(labels):
                came = f"{part.dtype} of shape {tuple(part.shape)} with {len(labels)} labels"
                raise ValueError(f"data '{self.name}': {came} came, wanted uint8 (N, 3, S, S) and N labels")
        if self.train.shape[1:] != self.test.shape[1:]:
            sizes = f"{tuple(self.train.shape[2:])} and {tuple(self.test.shape[2:])}"
            raise ValueError(f"data '{self.name}': its two parts are of {sizes} pixels, wanted the same")

    @property
    def side(self) -> int:
        return self.train.shape[-1]

    @cached_property
    def sha256(self) -> str:
        """Of all pixels and labels."""
        digest = sha256()
        for part in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(f"{tuple(part.shape)}".encode())
            digest.update(part.cpu().contiguous().numpy().data)
        return digest.hexdigest()


def read_data(
    place: str, side: int = 0, *, test: str = "", resize: int = 0, seed: int = 0,
    watch: Callable[[float, str], None] = lambda share, text: None,
) -> Data:  # fmt: skip
    """Pictures at a place, read at once; parts.py says which places there are.

    Squares of one size up to `side` stay as they are; others are resized, shorter side to `resize` (0: `side`), and
    their middle is cut out. `seed` is for splits that nobody gives.
    """
    if side < 0 or resize < 0 or (resize and resize < side):
        raise ValueError(f"side {side}, resize {resize}: wanted whole numbers of 0 or more, resize no less than side")
    parts = parts_of(place, test, seed)
    items = [*parts.train, *parts.test]
    pixels, kept, skipped, resized = levels_of(items, side, resize, SIDE, parts.name, watch)
    labels = torch.tensor([int(items[place].label or 0) for place in kept])
    count = sum(place < len(parts.train) for place in kept)
    notes = [*parts.notes]
    if skipped:
        told = [f"{name} ({why})" for name, why in skipped.items()]
        notes.append(f"{len(skipped)} pictures cannot be read and were left out: {first_names(told)}")
    if resized:
        notes.append(f"pictures were resized to {resized} and cut to {pixels.shape[-1]} pixels a side")
    return Data(
        parts.name, pixels[:count], labels[:count], pixels[count:], labels[count:], _named(parts, labels), resized,
        tuple(notes),
    )  # fmt: skip


def _named(parts: Parts, labels: Tensor) -> tuple[str, ...]:
    return parts.classes or tuple(map(str, range(int(labels.max()) + 1)))


def checked_labels(train: Tensor, test: Tensor, classes: Sequence[str], name: str) -> None:
    """Raise unless labels are 0 to K-1 and every class is there to be learnt."""
    if not len(train) or not len(test):
        raise ValueError(f"data '{name}' has {len(train)} training and {len(test)} test images: wanted some of both")
    count = len(classes)
    low, high = int(min(train.min(), test.min())), int(max(train.max(), test.max()))
    if low < 0 or high >= count:
        raise ValueError(f"data '{name}' has labels from {low} to {high}: wanted 0 to {count - 1}, for {count} classes")
    found = train.bincount(minlength=count)
    lacking = [f"{number} ({classes[number]})" for number in (found == 0).nonzero().flatten().tolist()]
    if int((found > 0).sum()) < 2:
        raise ValueError(f"data '{name}' has training images of one class only: wanted two classes or more")
    if lacking:
        raise ValueError(
            f"data '{name}' has no training image of {len(lacking)} of {count} classes: {first_names(lacking)}; "
            "labels are to be 0, 1, 2, ... without a gap"
        )
