"""Many pictures read at once into one tensor of 8-bit levels."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from PIL import Image
from torch import Tensor

from saliometer.images.decode import UnreadableError
from saliometer.images.pictures import Item
from saliometer.images.preprocess import Preprocessing

TOGETHER = 256  # pictures between two words of progress


class _MixedError(Exception):
    """Pictures are not squares of one size, or too large."""


def levels_of(
    items: Sequence[Item], side: int, resize: int, otherwise: int, name: str, watch: Callable[[float, str], None]
) -> tuple[Tensor, list[int], dict[str, str], int]:
    """(N, 3, H, W) uint8, which items those are, why others are not, and the shorter side that was resized to.

    Squares of one size, no larger than `side`, stay as they are, and 0 is said; `otherwise` is the side of others
    where `side` is 0.
    """
    try:
        return *_read(items, _as_they_are(side), name, watch), 0
    except _MixedError:
        crop = side or otherwise
        short = resize or crop
        return *_read(items, Preprocessing(short, crop).levels, name, watch), short


def _as_they_are(most: int) -> Callable[[Image.Image], Tensor]:
    sizes: set[tuple[int, int]] = set()
    plain = Preprocessing(0, 0)

    def levels(picture: Image.Image) -> Tensor:
        sizes.add(picture.size)
        if len(sizes) > 1 or picture.width != picture.height or (most and picture.width > most):
            raise _MixedError
        return plain.levels(picture)

    return levels


def _read(
    items: Sequence[Item], levels: Callable[[Image.Image], Tensor], name: str, watch: Callable[[float, str], None]
) -> tuple[Tensor, list[int], dict[str, str]]:
    def one(item: Item) -> Tensor | str:
        try:
            return levels(item.picture(item.data()))
        except (UnreadableError, OSError) as error:
            return str(error)

    found: Tensor | None = None
    kept: list[int] = []
    skipped: dict[str, str] = {}
    for place, value in enumerate(_in_threads(one, items, lambda share: watch(share, f"reading {name}"))):
        if isinstance(value, str):
            skipped[items[place].name] = value
            continue
        if found is None:
            found = torch.empty(len(items), *value.shape, dtype=torch.uint8)
        found[len(kept)] = value
        kept.append(place)
    if found is None:
        reasons = "; ".join(f"{one}: {why}" for one, why in list(skipped.items())[:3])
        raise ValueError(f"none of the {len(items)} pictures of '{name}' can be read ({reasons})")
    return found[: len(kept)], kept, skipped


def _in_threads(
    one: Callable[[Item], Tensor | str], items: Sequence[Item], watch: Callable[[float], None]
) -> Iterator[Tensor | str]:
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        for start in range(0, len(items), TOGETHER):
            yield from pool.map(one, items[start : start + TOGETHER])
            watch(min(1.0, (start + TOGETHER) / len(items)))
