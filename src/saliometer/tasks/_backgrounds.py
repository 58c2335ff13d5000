"""What lies behind TextBox's objects. A background is a function (seeds, split) -> (N, 3, 64, 64) in [0, 1].

It must be a pure function of each image's seed (and of the split), so that any subset can be drawn in any order. One of
your own joins with `BACKGROUNDS["stripes"] = stripes`, or as `file.py:stripes` wherever a background is asked for.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saliometer.photos import photographs as carried
from saliometer.registry import Entry, Facts, Spec, one_of
from saliometer.seeds import uniform

SIDE = 64
CROPPED_FROM = 144  # the shorter side of a photograph before a piece of 64x64 is cut out
DIMMED = 0.7
SPLITS = ("train", "test")
SHARING = ("disjoint", "shared")
Behind = Callable[[Tensor], Tensor]  # (N,) int64 seeds -> (N, 3, 64, 64)


def black(seeds: Tensor, *, split: str) -> Tensor:
    """Zeros."""
    return torch.zeros(len(seeds), 3, SIDE, SIDE, device=seeds.device)


def noise(seeds: Tensor, *, split: str, most: int = 150) -> Tensor:
    """A whole number from 0 to `most` of 255, for every pixel and channel by itself (the authors' code has 99)."""
    return (uniform(seeds, "background noise", 3, SIDE, SIDE) * (most + 1)).floor_().div_(255)


def natural(seeds: Tensor, *, split: str, folder: str = "", photographs: str = "disjoint") -> Tensor:
    """Photographs at 0.7 of their brightness: whole ones of a folder, or pieces of the few that packages carry.

    Training and test images show no photograph in common, or, with photographs=shared, all, as in the paper.
    """
    bank = _bank(folder, photographs, split, seeds.device)
    which, top, left = uniform(seeds, "background photograph", 3).unbind(1)
    number = (which * len(bank.pixels)).long()
    room = bank.sizes[number] - SIDE + 1  # (N, 2): how many places a piece can start at
    span = torch.arange(SIDE, device=seeds.device)
    rows = (top * room[:, 0]).long()[:, None] + span
    columns = (left * room[:, 1]).long()[:, None] + span
    channels = torch.arange(3, device=seeds.device)
    pieces = bank.pixels[
        number[:, None, None, None], channels[:, None, None], rows[:, None, :, None], columns[:, None, None, :]
    ]
    return pieces * (DIMMED / 255)


BACKGROUNDS: dict[str, Callable[..., Tensor]] = {made.__name__: made for made in (black, noise, natural)}


def parsed(text: str) -> Spec:
    """`noise`, `natural(photographs=shared)`, and `natural:FOLDER` for natural(folder=FOLDER)."""
    if text.startswith("natural:"):
        return Spec("natural", (("folder", text.removeprefix("natural:")),))
    spec = Spec.parse(text)
    spec.check("background", Entry(spec.name, BACKGROUNDS[one_of("background", spec.name, BACKGROUNDS)], Facts()))
    return spec


def background(text: str, split: str) -> Behind | None:
    """The background of that name for one split; none where there is nothing to draw."""
    spec = parsed(text)
    return None if spec.name == "black" else partial(BACKGROUNDS[spec.name], split=split, **dict(spec.params))


def photographs_of(text: str) -> dict[str, Any]:
    """How many photographs a background has for each split, and their SHA-256; {} where it has none."""
    spec = parsed(text)
    if spec.name != "natural":
        return {}
    params = {"folder": "", "photographs": "disjoint"} | dict(spec.params)
    banks = {split: _bank(params["folder"], params["photographs"], split, torch.device("cpu")) for split in SPLITS}
    every = sorted({digest for bank in banks.values() for digest in bank.digests})
    return {
        "photographs": {split: len(bank.pixels) for split, bank in banks.items()} | {"split": params["photographs"]},
        "photographs_sha256": sha256("".join(every).encode()).hexdigest(),
        "photographs_from": "a folder" if params["folder"] else "pieces of those that installed packages carry",
    }


class Bank:
    """Photographs of one split on a device, padded to one size."""

    def __init__(self, pictures: dict[str, np.ndarray], device: torch.device) -> None:
        self.digests = list(pictures)
        sizes = [picture.shape[:2] for picture in pictures.values()]
        height, width = (max(size[axis] for size in sizes) for axis in (0, 1))
        pixels = torch.zeros(len(sizes), 3, height, width, dtype=torch.uint8)
        for place, picture in enumerate(pictures.values()):
            pixels[place, :, : picture.shape[0], : picture.shape[1]] = torch.from_numpy(picture).permute(2, 0, 1)
        self.pixels = pixels.to(device)
        self.sizes = torch.tensor(sizes, device=device)  # (P, 2) rows and columns


@lru_cache(maxsize=8)
def _bank(folder: str, sharing: str, split: str, device: torch.device) -> Bank:
    one_of("way to share photographs", sharing, SHARING)
    pictures = _pictures(folder)
    if sharing == "shared":
        return Bank(pictures, device)
    if len(pictures) < 2:
        raise ValueError(
            f"background natural: '{folder}' holds 1 photograph, wanted 2 or more, so that training and test images "
            "share none; natural(photographs=shared) lets them share all"
        )
    lots = sorted(pictures)  # by hash, so that neither a folder's names nor their order matter
    test = set(lots[: max(1, round(len(lots) / 4))])
    return Bank({one: pictures[one] for one in lots if (one in test) == (split == "test")}, device)


@lru_cache(maxsize=2)
def _pictures(folder: str) -> dict[str, np.ndarray]:
    """SHA-256 of a file, or of a package's photograph's name -> (H, W, 3) uint8: no decoder's rounding counts."""
    if folder:
        return _of_folder(folder)
    return {sha256(name.encode()).hexdigest(): _shorter_side(array) for name, array in carried().items()}


def _of_folder(folder: str) -> dict[str, np.ndarray]:
    """Whole photographs at 64x64, in Pillow's own way to resize, as the authors made them; each once."""
    from saliometer.images import read_images

    found = read_images(folder)
    for name, why in found.skipped.items():
        raise ValueError(f"background natural: cannot read '{name}' in '{folder}' ({why}): take it out of the folder")
    return {
        sha256(item.data()).hexdigest(): np.array(found.picture(place).resize((SIDE, SIDE)))
        for place, item in enumerate(found.items)
    }


def _shorter_side(array: np.ndarray) -> np.ndarray:
    height, width = array.shape[:2]
    share = CROPPED_FROM / min(height, width)
    return np.array(Image.fromarray(array).resize((round(width * share), round(height * share))))
