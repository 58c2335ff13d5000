"""Pictures that are arrays already: an .npz with x and y, or a data set of torchvision's on this machine."""

import inspect
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from saliometer.images.decode import rgb
from saliometer.images.pictures import Item
from saliometer.registry import unknown

PARTS = {"imagenet": "val", "imagenette": "val", "places365": "val"}  # the split to look at, where it is not 'test'
BASES = ("visiondataset", "datasetfolder")  # no data sets themselves
UNLABELLED = ("_optical_flow", "_stereo_matching")  # torchvision's modules of pictures without classes
TRAINING = {"oxfordiiitpet": "trainval", "places365": "train-standard"}  # to train on, where it is not 'train'


def of_arrays(path: Path) -> tuple[list[Item], tuple[str, ...]]:
    """x is uint8 (N, H, W), (N, H, W, 1) or (N, H, W, 3), y (N,) if there are labels, classes their names."""
    try:
        with np.load(path, allow_pickle=False) as file:
            held = {name: file[name] for name in ("x", "y", "classes") if name in file}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(
            f"'{path}' cannot be read: {error}; wanted an .npz with x, and y if there are labels"
        ) from None
    pixels, labels = held.get("x"), held.get("y")
    if (
        pixels is None
        or pixels.dtype != np.uint8
        or pixels.ndim not in (3, 4)
        or pixels.shape[3:] not in ((), (1,), (3,))
    ):
        came = "no x" if pixels is None else f"x of shape {pixels.shape} and type {pixels.dtype}"
        raise ValueError(f"'{path}' holds {came}: wanted uint8 (N, H, W) or (N, H, W, 3)")
    if not len(pixels):
        raise ValueError(f"'{path}' holds no pictures")
    if labels is not None and (labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0):
        raise ValueError(
            f"'{path}' holds y of shape {labels.shape} and type {labels.dtype}: wanted {len(pixels)} whole numbers of "
            "0 or more"
        )
    if pixels.ndim == 4 and pixels.shape[3] == 1:
        pixels = pixels[..., 0]
    digits = len(str(len(pixels) - 1))
    show = partial(_picture, shape=pixels.shape[1:])
    items = [
        Item(f"{i:0{digits}d}", pixels[i].tobytes, None if labels is None else int(labels[i]), picture=show)
        for i in range(len(pixels))
    ]
    return items, tuple(map(str, held.get("classes", ())))


def _picture(data: bytes, shape: tuple[int, ...]) -> Image.Image:
    return rgb(Image.fromarray(np.frombuffer(data, np.uint8).reshape(shape)))


def torchvisions(name: str) -> Callable[..., Any]:
    """The data set of that name, small letters or not."""
    from torchvision import datasets

    known: dict[str, Callable[..., Any]] = {one.lower(): getattr(datasets, one) for one in datasets.__all__}
    known = {
        one: build
        for one, build in known.items()
        if inspect.isclass(build) and one not in BASES and build.__module__.rpartition(".")[2] not in UNLABELLED
    }
    if name.lower() not in known:
        raise LookupError(unknown("data set", name, known) + " Or give a folder, a CSV or an .npz that exists.")
    return known[name.lower()]


def has_parts(name: str) -> bool:
    """Whether a data set of torchvision's says what is for training and what for tests."""
    return bool({"train", "split"} & set(inspect.signature(torchvisions(name)).parameters))


def of_torchvision(name: str, root: Path, training: bool = False) -> tuple[list[Item], tuple[str, ...]]:
    """The test part of a data set (or its validation part), or what is trained on; nothing is downloaded."""
    build = torchvisions(name)
    takes = inspect.signature(build).parameters
    part = TRAINING.get(name.lower(), "train") if training else PARTS.get(name.lower(), "test")
    given: dict[str, Any] = {"train": training, "split": part, "download": False}
    if name.lower() == "imagenet":
        given.pop("download")
    try:
        held = build(str(root), **{key: value for key, value in given.items() if key in takes})
        count = len(held)
    except Exception as error:
        why = str(error).replace("You can use download=True to download it", "").strip().rstrip(".")
        raise ValueError(
            f"torchvision cannot read data set '{name}' at '{root}' ({why}): nothing is downloaded here, so put its "
            "files there as torchvision keeps them, or give another root"
        ) from error
    if not count:
        raise ValueError(f"data set '{name}' at '{root}' holds no pictures")
    lists = [getattr(held, word, None) for word in ("targets", "_labels", "labels", "y")]
    lists.append([label for _, label in getattr(held, "_samples", ())] or None)
    labels = next((values for values in lists if values is not None), None)
    digits = len(str(count - 1))

    def data(place: int) -> bytes:
        return _packed(held[place][0])

    def label(place: int) -> int:
        return int(held[place][1] if labels is None else labels[place])

    items = [Item(f"{i:0{digits}d}", partial(data, i), label(i), picture=_unpacked) for i in range(count)]
    return items, tuple(map(str, getattr(held, "classes", getattr(held, "categories", ()))))


def _packed(picture: Any) -> bytes:
    """A picture's size and pixels as bytes."""
    if not isinstance(picture, Image.Image):
        raise ValueError(f"a data set gave {type(picture).__name__}, wanted pictures: leave out its transforms")
    shown = rgb(picture)
    return b"%d %d\n" % shown.size + shown.tobytes()


def _unpacked(data: bytes) -> Image.Image:
    head, _, pixels = data.partition(b"\n")
    width, height = map(int, head.split())
    return Image.frombytes("RGB", (width, height), pixels)
