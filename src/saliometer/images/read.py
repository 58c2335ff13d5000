"""Where pictures may lie: a folder, a folder for each class, a CSV, an .npz, or a data set that torchvision knows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from saliometer.files import printable
from saliometer.images.arrays import of_arrays, of_torchvision
from saliometer.images.pictures import Item, Pictures, gathered
from saliometer.images.table import column, first_names, labels_of, table

SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".pnm",
    ".tga", ".ico", ".jp2", ".avif", ".heic", ".heif",
)  # fmt: skip
LISTED = "labels.csv"  # a folder that holds it is read by it
LABELS = ("class_index", "label", "target", "imagenet_index")
FILES = ("file", "path", "filename", "image")
BOXES = ("", "body_")
MOST = 2**31 - 1  # classes; a larger label is a mistake


def read_images(
    place: Path | str, *, labels: Path | str | None = None, masks: Path | str | None = None, limit: int = 0,
    root: Path | str | None = None,
) -> Pictures:  # fmt: skip
    """Pictures in a stable order; what cannot be read is left out and named, what is mislabelled is an error.

    `place` is a folder, a folder of one folder for each class (its label is the folder's name if all are whole
    numbers, else its place in the sorted list), a folder with a labels.csv, a CSV, an .npz with x and y, or
    `cifar10:FOLDER` for a data set of torchvision's, the folder also as `root`. `labels` is a CSV of file and
    class_index, numbers or names; `masks` a folder with a mask of the same name for each picture; `limit` takes that
    many, spread evenly.
    """
    if limit < 0:
        raise ValueError(f"limit={limit}, wanted 1 or more, or 0 for all")
    items, classes = found(place, root)
    _refuse_twins([item.name for item in items], place)
    if labels is not None:
        items, classes = _labelled(items, Path(labels))
    unlabelled = [item.name for item in items if item.label is None]
    if unlabelled and len(unlabelled) < len(items):
        raise ValueError(f"{len(unlabelled)} of {len(items)} pictures have no label: {first_names(unlabelled)}")
    far = next((item for item in items if (item.label or 0) > MOST), None)
    if far is not None:
        raise ValueError(f"label {far.label} of '{far.name}' is no class's place: wanted 0 for the first, and so on")
    if masks is not None:
        items = _masked(items, Path(masks))
    return gathered(items, classes, limit, str(place))


def found(place: Path | str, root: Path | str | None = None) -> tuple[list[Item], tuple[str, ...]]:
    """What lies at a place, not yet read, and the names of its classes where they have any."""
    name, colon, folder = str(place).partition(":")
    path = Path(place)
    if not path.exists() and colon and not folder:
        raise ValueError(f"data set '{name}' wants the folder in which it lies: {name}:FOLDER")
    if not path.exists() and (colon or root is not None):
        return of_torchvision(name, Path(folder) if colon else Path(str(root)))
    if not path.exists() or not str(place):
        raise ValueError(
            f"there is nothing at '{place}': wanted a picture, a folder of them, a CSV, an .npz or a data set, "
            "cifar10:FOLDER"
        )
    if path.is_dir():
        return _folder(path)
    if path.suffix.lower() == ".csv":
        return _csv(path)
    if path.suffix.lower() == ".npz":
        return of_arrays(path)
    if path.suffix.lower() in SUFFIXES:
        return [Item(printable(path.name), path.read_bytes)], ()
    raise ValueError(f"'{place}' is no folder and ends in '{path.suffix}': wanted a picture, a .csv or an .npz")


def _folder(folder: Path) -> tuple[list[Item], tuple[str, ...]]:
    here = _files(folder)
    if (folder / LISTED).exists():
        items, classes = _csv(folder / LISTED)
        unlisted = sorted({printable(file.name) for file in here} - {item.name for item in items})
        if unlisted:
            raise ValueError(
                f"'{folder / LISTED}' does not list {len(unlisted)} pictures of its folder: {first_names(unlisted)}. "
                "List them, or name the CSV itself to take those that it lists"
            )
        return items, classes
    below = {printable(one.name): found for one in sorted(folder.iterdir()) if _shown(one) and (found := _files(one))}
    if here and below:
        raise ValueError(
            f"pictures lie in '{folder}' and in its folders ({first_names(list(below))}): wanted one or the other"
        )
    deep = (one.parent for one in folder.glob("*/*/**/*") if _deep(one, folder))
    deeper = sorted({one.relative_to(folder).as_posix() for one in deep})
    if deeper and not here:
        raise ValueError(
            f"pictures lie more than one folder deep in '{folder}' ({first_names(deeper)}): wanted them in the folder "
            "itself, or in one folder for each class"
        )
    if not here and not below:
        raise ValueError(f"no pictures in '{folder}': wanted files such as .jpg or .png, or a folder of them per class")
    if here:
        return [Item(printable(file.name), file.read_bytes) for file in here], ()
    numbers = all(name.isdecimal() for name in below)
    values = {name: int(name) if numbers else place for place, name in enumerate(below)}
    if len(set(values.values())) < len(values):
        raise ValueError(f"two folders of '{folder}' are the same class: {first_names(list(values))}")
    items = [
        Item(f"{name}/{printable(file.name)}", file.read_bytes, values[name]) for name in below for file in below[name]
    ]
    return items, () if numbers else tuple(below)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    named = (one for one in folder.iterdir() if _shown(one) and one.suffix.lower() in SUFFIXES)
    return sorted(one for one in named if one.is_file() or (one.is_symlink() and not one.exists()))  # leads nowhere


def _deep(path: Path, folder: Path) -> bool:
    """A picture in none but shown folders."""
    return path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _shown(path: Path) -> bool:
    return not path.name.startswith(".")


def _csv(path: Path) -> tuple[list[Item], tuple[str, ...]]:
    """Files, and what else the columns say of them; paths start at the CSV."""
    rows = table(path)
    file = column(rows, FILES)
    if file is None:
        raise ValueError(f"'{path}' has the columns {', '.join(rows[0])}: wanted one named 'file'")
    names = [row[file] for row in rows]
    _refuse_twins(names, path)
    lost = [name for name in names if not (path.parent / name).is_file()]
    if lost:
        raise ValueError(f"'{path}' lists {len(lost)} files that are not there: {first_names(lost)}")
    label = column(rows, LABELS)
    values: Mapping[str, int | None] = dict.fromkeys(names)
    classes: tuple[str, ...] = ()
    if label:
        values, classes = labels_of(rows, file, label, path)
    items = []
    for row in sorted(rows, key=lambda row: row[file]):
        item = Item(row[file], (path.parent / row[file]).read_bytes, values[row[file]])
        if row.get("mask"):
            if not (path.parent / row["mask"]).is_file():
                raise ValueError(f"'{path}' lists the mask '{row['mask']}' that is not there")
            item = replace(item, mask=(path.parent / row["mask"]).read_bytes)
        items.append(replace(item, box=_box(row, item.name, path)))
    return items, classes


def _box(row: dict[str, str], name: str, path: Path) -> tuple[float, float, float, float] | None:
    for prefix in BOXES:
        words = [row.get(prefix + edge, "") for edge in ("x0", "y0", "x1", "y1")]
        if not any(words):
            continue
        try:
            left, top, right, bottom = map(float, words)
        except ValueError:
            left = right = top = bottom = 0.0
        if not (left < right and top < bottom):
            raise ValueError(f"'{path}' gives '{name}' the box {words}: wanted x0 < x1 and y0 < y1, in pixels")
        return left, top, right, bottom
    return None


def _labelled(items: list[Item], path: Path) -> tuple[list[Item], tuple[str, ...]]:
    """The items with the labels of a CSV, which must name exactly these files; and its classes, if they have names."""
    if not path.is_file():
        raise ValueError(f"there are no labels at '{path}': wanted a CSV with the columns file and class_index")
    rows = table(path)
    file, label = column(rows, FILES), column(rows, LABELS)
    if file is None or label is None:
        raise ValueError(f"'{path}' has the columns {', '.join(rows[0])}: wanted file and class_index")
    values, classes = labels_of(rows, file, label, path)
    names = {item.name for item in items}
    missing, foreign = [item.name for item in items if item.name not in values], sorted(set(values) - names)
    if missing or foreign:
        parts = [f"{len(missing)} pictures have no label: {first_names(missing)}"] * bool(missing)
        parts += [f"{len(foreign)} labels have no picture: {first_names(foreign)}"] * bool(foreign)
        raise ValueError(f"'{path}' does not match the pictures: {'; '.join(parts)}")
    return [replace(item, label=values[item.name]) for item in items], classes


def _masked(items: list[Item], folder: Path) -> list[Item]:
    if not folder.is_dir():
        raise ValueError(f"there is no folder of masks at '{folder}'")
    masks = (one for one in sorted(folder.rglob("*")) if _shown(one) and one.suffix.lower() in SUFFIXES)
    files = {printable(one.relative_to(folder).with_suffix("").as_posix()): one for one in masks}
    found = [files.get(Path(item.name).with_suffix("").as_posix()) for item in items]
    if not any(found):
        raise ValueError(f"no mask in '{folder}' has the name of a picture: {first_names([i.name for i in items])}")
    return [replace(item, mask=one.read_bytes if one else item.mask) for item, one in zip(items, found, strict=True)]


def _refuse_twins(names: Sequence[str], place: Path | str) -> None:
    seen: set[str] = set()
    twins = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twins:
        raise ValueError(f"'{place}' lists {len(twins)} pictures twice: {first_names(twins)}")
