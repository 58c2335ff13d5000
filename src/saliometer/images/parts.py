"""Which pictures are to be trained on and which to be tested on: as a data set says, or split by seed."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from saliometer.images.arrays import has_parts, of_arrays, of_torchvision
from saliometer.images.pictures import Item
from saliometer.images.read import found
from saliometer.images.table import first_names
from saliometer.seeds import fork

TESTS = ("test", "val", "valid", "validation")  # what the other part is called, in folders and names of files
ALIASES = {"oxford102": "flowers102", "flowers": "flowers102", "cub": "cub200", "cub_200_2011": "cub200"}
CALLED = {"flowers102": "oxford102"}  # as the COSE paper does
SHARE = 0.2  # of a class that a split keeps for tests
Set = tuple[list[Item], tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Parts:
    """Pictures not yet read."""

    name: str
    train: list[Item]
    test: list[Item]
    classes: tuple[str, ...]  # empty where only numbers are known
    notes: tuple[str, ...] = ()
    whole: tuple[Item, ...] = ()  # what was split by us


def parts_of(place: str, test: str, seed: int) -> Parts:
    """`place` is a folder with train and test (or val) in it, a folder per class, .npz files (several with commas
    between them, or a folder of them), a CSV, or `cifar10:FOLDER`; `test` is a place of its own for the other part.
    """
    name, colon, folder = place.partition(":")
    if colon and not Path(place).exists():
        parts = _data_set(name, Path(folder), seed)
    elif arrays := _arrays(place):
        parts = _of_arrays(arrays, place, seed)
    else:
        parts = _of_pictures(Path(place), seed)
    if test:
        parts = replace(parts, train=list(parts.whole) or parts.train, test=_other(test, parts), notes=())
    for what, items in (("training", parts.train), ("test", parts.test)):
        unlabelled = [item.name for item in items if item.label is None]
        if unlabelled:
            raise ValueError(
                f"{len(unlabelled)} of {len(items)} {what} pictures of '{place}' have no label: "
                f"{first_names(unlabelled)}; wanted a folder per class, a labels.csv, or an .npz with x and y"
            )
    return parts


def _other(test: str, parts: Parts) -> list[Item]:
    arrays = _arrays(test)
    items, classes = _joined([of_arrays(path) for path in arrays], test) if arrays else found(test)
    return _by_name(items, classes, parts.classes, test)


def _by_name(items: list[Item], classes: Sequence[str], wanted: Sequence[str], place: str) -> list[Item]:
    """With labels that count the classes of the training part."""
    if not classes or not wanted or tuple(classes) == tuple(wanted):
        return items
    strange = [name for name in classes if name not in wanted]
    if strange:
        raise ValueError(f"'{place}' has classes that are not trained on: {first_names(strange)}")
    return [replace(item, label=list(wanted).index(classes[item.label or 0])) for item in items]


# Folders and files


def _of_pictures(path: Path, seed: int) -> Parts:
    inside = path / "train" if (path / "train").is_dir() else path
    items, classes = found(inside)
    other = next((path / word for word in TESTS if (path / word).is_dir()), None)
    if other is None or inside == path:
        return _split(_short(path), items, classes, seed)
    tests, named = found(other)
    return Parts(_short(path), items, _by_name(tests, named, classes, str(other)), classes)


def _short(path: Path) -> str:
    return path.stem if path.is_file() else path.resolve().name


def _arrays(place: str) -> list[Path]:
    """The .npz files that a place names, if it names any."""
    path = Path(place)
    if path.is_dir():
        return sorted(path.glob("*.npz"))
    several = [Path(one.strip()) for one in place.split(",")]
    if not all(one.suffix.lower() == ".npz" for one in several):
        return []
    lost = [str(one) for one in several if not one.is_file()]
    if lost:
        raise ValueError(f"there is no file '{lost[0]}': wanted .npz files with x and y")
    return several


def _is_test(path: Path) -> bool:
    return any(word in TESTS for word in path.stem.lower().replace("-", "_").split("_"))


def _of_arrays(files: list[Path], place: str, seed: int) -> Parts:
    name = _short(Path(place)) if len(files) == 1 or Path(place).is_dir() else files[0].stem
    tests = [path for path in files if _is_test(path)]
    rest = [path for path in files if path not in tests]
    if not tests or not rest:
        items, classes = _joined([of_arrays(path) for path in files], place)
        return _split(name, items, classes, seed)
    items, classes = _joined([of_arrays(path) for path in rest], place)
    others, named = _joined([of_arrays(path) for path in tests], place)
    return Parts(name, items, _by_name(others, named, classes, place), classes)


def _joined(sets: list[Set], place: str) -> Set:
    classes = sets[0][1]
    if any(named != classes for _, named in sets):
        raise ValueError(f"the .npz files of '{place}' name different classes: wanted the same in each")
    if len(sets) == 1:
        return sets[0]
    return [replace(item, name=f"{n}/{item.name}") for n, (items, _) in enumerate(sets) for item in items], classes


# Data sets by name


def _data_set(name: str, root: Path, seed: int) -> Parts:
    known = ALIASES.get(name.lower(), name.lower())
    if not root.is_dir():
        raise ValueError(f"there is no folder '{root}' with the data set '{name}': nothing is downloaded here")
    if known == "cub200":
        return _cub(root)
    if has_parts(known):
        items, classes = of_torchvision(known, root, training=True)
        tests, named = of_torchvision(known, root)
        return Parts(CALLED.get(known, known), items, _by_name(tests, named, classes, name), classes)
    items, classes = of_torchvision(known, root)
    return _split_by_sklearn(known, items, classes) if known == "caltech101" else _split(known, items, classes, seed)


def _cub(root: Path) -> Parts:
    """CUB-200-2011 as its archive is unpacked, with its official split."""
    folder = next((one for one in (root, root / "CUB_200_2011") if (one / "images.txt").is_file()), None)
    if folder is None:
        raise ValueError(f"'{root}' holds no CUB-200-2011: wanted its images.txt, or a folder CUB_200_2011 with it")
    files, labels, official = (
        _columns(folder / file) for file in ("images.txt", "image_class_labels.txt", "train_test_split.txt")
    )
    classes = tuple(_columns(folder / "classes.txt").values())
    items: dict[str, list[Item]] = {"1": [], "0": []}  # trained on, or not
    for number, file in files.items():
        path = folder / "images" / file
        items[official[number]].append(Item(file, path.read_bytes, int(labels[number]) - 1))
    return Parts("cub200", items["1"], items["0"], classes)


def _columns(path: Path) -> dict[str, str]:
    try:
        lines = [line.split(maxsplit=1) for line in path.read_text().splitlines() if line.strip()]
        return {number: value.strip() for number, value in lines}
    except (OSError, ValueError) as error:
        raise ValueError(f"'{path}' cannot be read ({error}): wanted a number and a value in every line") from None


# Splits


def _split(name: str, items: list[Item], classes: tuple[str, ...], seed: int) -> Parts:
    """A fifth of every class for tests, by seed and the pictures' names; a class of one picture is trained on."""
    by_class: dict[int | None, list[Item]] = defaultdict(list)
    for item in sorted(items, key=lambda item: fork("split", seed, item.name)):
        by_class[item.label].append(item)
    tests = {item.name for some in by_class.values() for item in some[: _kept(len(some))]}
    train = [item for item in items if item.name not in tests]
    note = f"nobody says what is for tests: a fifth of every class was kept for them, by seed {seed}"
    return Parts(name, train, [item for item in items if item.name in tests], classes, (note,), tuple(items))


def _kept(count: int) -> int:
    return max(round(SHARE * count), min(count - 1, 1))


def _split_by_sklearn(name: str, items: list[Item], classes: tuple[str, ...]) -> Parts:
    """As the code of the COSE paper splits Caltech101: a fifth, not by class, scikit-learn's seed 0."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(items, test_size=SHARE, random_state=0)
    note = "a fifth was kept for tests, as the code of the COSE paper splits it"
    return Parts(name, train, test, classes, (note,), tuple(items))
