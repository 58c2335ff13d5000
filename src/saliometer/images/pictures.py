"""A set of pictures: names, labels where there are any, and each picture when it is looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np
from PIL import Image

from saliometer.images.decode import UnreadableError, decoded, opened


@dataclass(frozen=True)
class Item:
    """One picture of a set, not yet read."""

    name: str
    data: Callable[[], bytes]  # the file's bytes, or the pixels'
    label: int | None = None
    mask: Callable[[], bytes] | None = None  # a file's bytes
    box: tuple[float, float, float, float] | None = None  # left, top, right, bottom, in pixels of the upright picture
    picture: Callable[[bytes], Image.Image] = decoded


@dataclass(frozen=True, eq=False)
class Pictures:
    """Pictures that can be read, in a stable order."""

    names: tuple[str, ...]
    labels: tuple[int, ...] | None
    classes: tuple[str, ...]  # the names of the classes, as far as they are known
    skipped: dict[str, str]  # name -> why it cannot be read
    fingerprint: str  # the SHA-256 of names and contents
    items: tuple[Item, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def some(self, places: Sequence[int]) -> "Pictures":
        """Those at some places."""
        labels = None if self.labels is None else tuple(self.labels[place] for place in places)
        chosen = tuple(self.items[place] for place in places)
        return replace(self, names=tuple(item.name for item in chosen), labels=labels, items=chosen)

    @property
    def has_masks(self) -> bool:
        return any(item.mask or item.box for item in self.items)

    def picture(self, place: int) -> Image.Image:
        """The picture at a place: upright, 8 bits, red, green and blue."""
        item = self.items[place]
        try:
            return item.picture(item.data())
        except UnreadableError as error:
            raise ValueError(f"picture '{item.name}' has changed and cannot be read any more: {error}") from None

    def mask(self, place: int) -> Image.Image:
        """Its mask in 8 bits of grey: 255 on the object, 0 off it, between where nobody says; all 0 if it has none."""
        item = self.items[place]
        if item.mask:
            return _drawn(item.mask(), item.name, self.picture(place).size)
        size = self.picture(place).size
        return Image.new("L", size) if item.box is None else _filled(item.box, item.name, size)


def gathered(items: list[Item], classes: tuple[str, ...], limit: int, place: str) -> Pictures:
    """The pictures that can be read; with a limit as many, spread evenly over the whole list."""
    chosen = items if not limit or limit >= len(items) else [items[i * len(items) // limit] for i in range(limit)]
    kept: list[Item] = []
    skipped: dict[str, str] = {}
    digest = sha256()
    for item in chosen:
        try:
            data = item.data()
            item.picture(data)
        except (UnreadableError, OSError) as error:
            skipped[item.name] = getattr(error, "strerror", None) or str(error)
            continue
        kept.append(item)
        digest.update(sha256(item.name.encode()).digest() + sha256(data).digest())
    if not kept:
        reasons = "; ".join(f"{name}: {why}" for name, why in list(skipped.items())[:3])
        raise ValueError(f"none of the {len(chosen)} pictures of '{place}' can be read ({reasons})")
    labels = tuple(item.label for item in kept if item.label is not None)
    return Pictures(
        tuple(item.name for item in kept), labels if len(labels) == len(kept) else None, classes, skipped,
        digest.hexdigest(), tuple(kept),
    )  # fmt: skip


def _drawn(data: bytes, name: str, size: tuple[int, int]) -> Image.Image:
    try:
        mask = opened(data)
    except UnreadableError as error:
        raise ValueError(f"the mask of '{name}' cannot be read: {error}") from None
    if mask.size != size:
        raise ValueError(f"the mask of '{name}' has size {mask.size}, wanted that of the picture, {size}")
    values = np.asarray(mask.convert("L") if mask.mode == "1" else mask)
    if values.ndim != 2 or not (values.dtype == np.uint8 or set(np.unique(values)) <= {0, 1}):
        raise ValueError(f"the mask of '{name}' is of mode {mask.mode}, wanted 8 bits of grey: 255 object, 0 none")
    highest = values.max(initial=0)
    if mask.mode == "P" and highest > 1:
        raise ValueError(f"the mask of '{name}' holds a palette's indices, wanted grey: 255 object, 0 none")
    values = values.astype(np.uint8)
    return Image.fromarray(values * np.uint8(255) if highest == 1 else values)


def _filled(box: tuple[float, float, float, float], name: str, size: tuple[int, int]) -> Image.Image:
    """Every pixel whose centre lies in the box."""
    left, top, right, bottom = box
    columns, rows = (np.arange(side) + 0.5 for side in size)
    inside = ((rows >= top) & (rows < bottom))[:, None] & ((columns >= left) & (columns < right))
    if not inside.any():
        raise ValueError(f"the box {box} of '{name}' holds no pixel of a picture of size {size}")
    return Image.fromarray(inside.astype(np.uint8) * np.uint8(255))
