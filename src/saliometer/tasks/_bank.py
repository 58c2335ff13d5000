"""Pictures of ten classes that tasks are made of: digits or photographs, from a package, a folder, a zip or arrays."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torch.nn import functional as F

from saliometer.registry import one_of
from saliometer.seeds import fork, forks, uniform

SPLITS = ("train", "test")
WORDS = {"train": ("train",), "test": ("val", "test")}  # what files and folders of a split are called
DIGIT, FRAME = 28, 4  # MNIST's side, and the empty frame round its digits
TILE = 64  # TinyImageNet's side
TEN = tuple("0123456789")
SYNSETS = {  # Yona & Greenfeld's two groups: TinyImageNet's folders, in words
    "n12267677": "acorn", "n07920052": "espresso", "n07753592": "banana", "n07614500": "ice cream",
    "n03447447": "gondola", "n04596742": "wok", "n07715103": "cauliflower", "n04265275": "space heater",
    "n03902125": "payphone", "n02486410": "baboon",
}  # fmt: skip
PAPER = tuple(SYNSETS)
WANTED = (
    "wanted 'sklearn', 'mnist:ROOT', a folder with a .npz (x, y) for train and for test, or a folder or .zip with "
    "train/CLASS/* and val/CLASS/*"
)


@dataclass(frozen=True, eq=False)
class Bank:
    """Pictures of one split on a device."""

    name: str  # what rows call the source
    pixels: Tensor  # (P, C, H, W) uint8
    labels: Tensor  # (P,) int64, 0 to 9
    classes: tuple[str, ...]
    digest: str  # of pixels and labels

    def picked(self, classes: Tensor, numbers: Tensor, seeds: Tensor, seed: int) -> Tensor:
        """(N, C, H, W) float32 in [0, 1]: of each class the picture of that number.

        First every picture comes once, in an order that follows from `seed`; further numbers fall by lot.
        """
        order, starts, counts = _order(self, seed)
        many = counts[classes]
        lots = (uniform(seeds, "picture", 1)[:, 0] * many).long()
        chosen = order[starts[classes] + numbers.where(numbers < many, lots)]
        return self.pixels[chosen].float().div_(255)


@lru_cache(maxsize=8)
def _order(held: Bank, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures by class and then by lot, where each class starts, and how many it has."""
    lots = uniform(forks(fork("bank", seed), torch.arange(len(held.labels), device=held.labels.device)), "lot", 1)
    by_lot = lots[:, 0].argsort(stable=True)
    order = by_lot[held.labels[by_lot].argsort(stable=True)]
    counts = held.labels.bincount(minlength=len(held.classes))
    return order, counts.cumsum(0) - counts, counts


@lru_cache(maxsize=8)
def bank(source: str, split: str, device: str = "cpu") -> Bank:
    """The pictures of a source: `sklearn`, `mnist:ROOT`, a folder or a zip."""
    one_of("split", split, SPLITS)
    name, pixels, labels, classes = _read(source, split)
    counts = np.bincount(labels, minlength=len(classes))
    if len(classes) != 10 or len(counts) > 10 or not counts.all():
        raise ValueError(
            f"'{source}' has {int((counts > 0).sum())} classes with pictures in its {split} part: wanted ten, or among "
            "others those of Yona & Greenfeld"
        )
    digest = sha256(pixels.tobytes() + labels.tobytes()).hexdigest()
    place = torch.device(device)
    return Bank(name, torch.from_numpy(pixels).to(place), torch.from_numpy(labels).to(place), classes, digest)


def digit_bank(source: str, split: str, device: str = "cpu") -> Bank:
    """The same, refused where it holds anything but digits."""
    found = bank(source, split, device)
    if found.pixels.shape[1:] != (1, DIGIT, DIGIT) or found.classes != TEN:
        came = f"pictures of {' x '.join(map(str, found.pixels.shape[1:]))} in the classes {', '.join(found.classes)}"
        raise ValueError(f"'{source}' holds no digits but {came}: wanted 1 x 28 x 28 in the classes 0 to 9")
    return found


Read = tuple[str, np.ndarray, np.ndarray, tuple[str, ...]]  # name, (P, C, H, W) uint8, (P,) int64, classes


def _read(source: str, split: str) -> Read:
    if source == "sklearn":
        return _of_sklearn(split)
    name, colon, root = source.partition(":")
    if colon and name == "mnist":
        return _of_torchvision(root, split)
    path = Path(source)
    if path.is_dir():
        arrays = sorted(one for one in path.glob("*.npz") if _split_of(one.name) == split)
        if arrays:
            return path.resolve().name, *_joined(arrays)
        files = sorted(one for one in path.rglob("*") if one.is_file())
        held = {one.relative_to(path).as_posix(): one.read_bytes for one in files}
        return _of_files(path.resolve().name, held, source, split)
    if path.suffix.lower() == ".zip" and path.is_file():
        return _of_zip(path, split)
    raise ValueError(f"there are no pictures at '{source}': {WANTED}")


def _split_of(name: str) -> str:
    """The part that a file's name speaks of, so that none is in both: `trainval.npz` is to train on."""
    return next((split for split, words in WORDS.items() if any(word in name for word in words)), "")


def _of_sklearn(split: str) -> Read:
    """1,797 digits of 8x8, made 20x20 in an empty frame as MNIST's are; a fifth of them, by lot, are for tests."""
    from sklearn.datasets import load_digits

    held = load_digits()
    small = torch.from_numpy(held.images).double()[:, None] / 16
    large = F.pad(F.interpolate(small, size=DIGIT - 2 * FRAME, mode="bilinear", align_corners=False), [FRAME] * 4)
    lots = uniform(forks(fork("sklearn digits"), torch.arange(len(large))), "split", 1)[:, 0].argsort(stable=True)
    tests = len(large) // 5
    chosen = lots[:tests] if split == "test" else lots[tests:]
    pixels = (large[chosen] * 255 + 0.5 + 1e-9).to(torch.uint8).numpy()  # halves go up on every machine
    return "sklearn", pixels, held.target[chosen.numpy()].astype(np.int64), TEN


def _of_torchvision(root: str, split: str) -> Read:
    from torchvision.datasets import MNIST

    try:
        held = MNIST(root, train=split == "train", download=False)
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"torchvision reads no MNIST at '{root}' ({why}): wanted a folder that holds MNIST/raw/ with four "
            "unpacked files; nothing is downloaded"
        ) from error
    return "mnist", held.data.numpy()[:, None], held.targets.numpy().astype(np.int64), TEN


def _joined(paths: list[Path]) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    parts = [_of_arrays(path) for path in paths]
    if len({(pixels.shape[1:], classes) for pixels, _, classes in parts}) > 1:
        raise ValueError(f"'{paths[0]}' and '{paths[-1]}' hold pictures of different sizes or classes: wanted one kind")
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]), parts[0][2]


def _of_arrays(path: Path) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    try:
        with np.load(path, allow_pickle=False) as file:
            pixels, labels = file["x"], file["y"]
            names = tuple(map(str, file["classes"])) if "classes" in file else TEN
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"'{path}' cannot be read ({error}): wanted an .npz with x and y") from error
    grey = pixels.ndim == 3
    colour = pixels.ndim == 4 and pixels.shape[3] == 3
    if pixels.dtype != np.uint8 or not (grey or colour) or not len(pixels):
        raise ValueError(
            f"'{path}' holds x of shape {pixels.shape} and type {pixels.dtype}: wanted uint8 (N, H, W) or (N, H, W, 3)"
        )
    if labels.shape != pixels.shape[:1] or labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
        raise ValueError(
            f"'{path}' holds y of shape {labels.shape} and type {labels.dtype}: wanted a class of 0 to 9 each"
        )
    ordered = pixels[:, None] if grey else pixels.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(ordered), labels.astype(np.int64), names


def _of_zip(path: Path, split: str) -> Read:
    try:
        with zipfile.ZipFile(path) as file:
            held = {name: file.read(name) for name in file.namelist() if not name.endswith("/")}
    except zipfile.BadZipFile as error:
        raise ValueError(f"'{path}' is no readable zip ({error}): {WANTED}") from error
    return _of_files(path.stem, {name: partial(bytes, data) for name, data in held.items()}, str(path), split)


def _of_files(name: str, files: dict[str, Callable[[], bytes]], source: str, split: str) -> Read:
    """Digits, where the classes are called 0 to 9; else photographs."""
    found = [_by_class(files, word) for word in WORDS[split]]
    by_class: dict[str, list[str]] = next(filter(None, found), {})
    if not by_class:
        folders = " or ".join(f"{word}/CLASS/" for word in WORDS[split])
        raise ValueError(
            f"no pictures of the {split} part in '{source}', that is .jpeg or .png files in {folders}: {WANTED}"
        )
    classes = PAPER if set(PAPER) <= set(by_class) else tuple(sorted(by_class))
    side, mode = (DIGIT, "L") if classes == TEN else (TILE, "RGB")
    chosen = [(file, label) for label, one in enumerate(classes) for file in by_class[one]]
    pixels = np.stack([_picture(files[file], file, source, side, mode) for file, _ in chosen])
    return name, pixels, np.array([label for _, label in chosen]), classes


def _by_class(files: dict[str, Callable[[], bytes]], word: str) -> dict[str, list[str]]:
    """Class -> its pictures below a folder `word`; TinyImageNet's own val/ has a list of them instead of folders."""
    listed = next((read() for file, read in files.items() if file.endswith(f"{word}/{word}_annotations.txt")), b"")
    told = {line.split("\t")[0]: line.split("\t")[1] for line in listed.decode().splitlines() if "\t" in line}
    found: dict[str, list[str]] = {}
    for file in sorted(files):
        path = PurePosixPath(file)
        at = next((place for place, part in enumerate(path.parts[:-2]) if part == word), None)
        is_picture = path.suffix.lower() in (".jpg", ".jpeg", ".png") and not path.name.startswith("._")  # macOS's
        if at is not None and is_picture:
            found.setdefault(told.get(path.name, path.parts[at + 1]), []).append(file)
    return found


def _picture(data: Callable[[], bytes], file: str, source: str, side: int, mode: str) -> np.ndarray:
    """(C, side, side) uint8."""
    try:
        with Image.open(io.BytesIO(data())) as picture:
            shown = picture.convert(mode)
    except OSError as error:
        raise ValueError(f"'{file}' in '{source}' is no readable picture ({error}): take it out") from error
    if shown.size != (side, side):
        shown = ImageOps.fit(shown, (side, side), Image.Resampling.BILINEAR)
    array = np.array(shown)
    return array[None] if mode == "L" else array.transpose(2, 0, 1)
