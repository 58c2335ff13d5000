"""Thumbnails of a run as a page takes them: pictures, maps of at most 56 pixels, outlines of objects."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from saliometer.engine.run import Run
from saliometer.report.book import Outline, Pictures
from saliometer.report.words import bucket

SIDE = 56  # of a map
MOST = 100  # images on a page
ROLES = {1: "primary", 2: "secondary", 0: "neither"}  # as saliometer.types has them
NONE = -128  # a map that is not there
Bytes = npt.NDArray[np.int8]


def of_bench(run: Run, methods: Sequence[str], samples: Mapping[str, int]) -> Pictures | None:
    """One image of each bucket; `samples` is setting and sample, with a space between -> place in the book."""
    scenes = []
    for setting in run.manifest["request"]["settings"]:
        path = run.folder / "thumbs" / setting / "scene.npz"
        if path.is_file():
            scenes.append((setting, _read(path)))
    if not scenes:
        return None
    places, captions, outlines = [], [], []
    kept: list[tuple[str, dict[str, Any], list[int]]] = []
    for setting, scene in scenes:
        shown = [i for i, sample in enumerate(scene["ids"]) if f"{setting} {sample}" in samples]
        kept.append((setting, scene, shown))
        for i in shown:
            label, target = int(scene["labels"][i]), int(scene["targets"][i])
            explains = f"; explains class {target}" if target != label else ""
            places.append(samples[f"{setting} {scene['ids'][i]}"])
            captions.append(f"{bucket(str(scene['buckets'][i]), run)} (class {label}{explains})")
            outlines.append(_boxes(scene["boxes"][i], scene["roles"][i]))
    photos = _photos([scene["images"][shown] for _, scene, shown in kept])
    maps = {}
    for method in methods:
        found = [_small(run.thumbnails(setting, method), shown) for setting, _, shown in kept]
        if any(one is not None for one in found):
            maps[method] = _joined(found, [len(shown) for _, _, shown in kept])
    return Pictures(tuple(places), tuple(captions), photos, maps, tuple(outlines))


def of_audit(run: Run, methods: Sequence[str], samples: Mapping[str, int]) -> Pictures | None:
    """The first images; `samples` is sample -> place in the book."""
    setting = run.manifest["request"]["settings"][0]
    paths = sorted(run.sprites_of(setting).glob("*.npz"))
    places: list[int] = []
    captions, outlines, photos = [], [], []
    kept: list[tuple[str, list[int]]] = []
    names = json.loads(run.classes.read_text(encoding="utf-8")) if run.classes.is_file() else []
    for path in paths:
        scene = _read(path)
        shown = [i for i, name in enumerate(scene["ids"]) if str(name) in samples][: MOST - len(places)]
        kept.append((path.name, shown))
        for i in shown:
            label, target = int(scene["labels"][i]), int(scene["targets"][i])
            known = f"; labelled {_class(label, names)}" if label >= 0 and label != target else ""
            places.append(samples[str(scene["ids"][i])])
            captions.append(f"explains {_class(target, names)}{known}")
            objects = scene.get("objects", np.zeros((len(scene["ids"]), 0)))[i]
            outlines.append(tuple(Outline("primary", border(one)) for one in objects if one.any()))
        photos.append(scene["images"][shown])
    if not places:
        return None
    maps = {}
    for method in methods:
        folder = run.sprites_of(setting, method)
        found = [_cut(folder / name, shown) for name, shown in kept]
        if any(one is not None for one in found):
            maps[method] = _joined(found, [len(shown) for _, shown in kept])
    return Pictures(tuple(places), tuple(captions), np.concatenate(photos), maps, tuple(outlines))


def _class(number: int, names: Sequence[str]) -> str:
    return f"{names[number]} ({number})" if number < len(names) else f"class {number}"


def _photos(images: Sequence[npt.NDArray[np.uint8]]) -> npt.NDArray[np.uint8]:
    """(N, H, W, 1 or 3): a setting's images are kept in grey where they have no colour."""
    each = [one if one.ndim == 4 else one[..., None] for one in images]
    channels = max(one.shape[-1] for one in each)
    return np.concatenate([np.broadcast_to(one, (*one.shape[:3], channels)) for one in each])


def _read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as kept:
        return {key: kept[key] for key in kept.files}


def _cut(path: Path, shown: Sequence[int]) -> Bytes | None:
    """A method's maps of some images; where its run kept fewer pictures than another, the rest is missing."""
    if not path.is_file():
        return None
    maps: Bytes = _read(path)["maps"]
    lacking = max([0, *(place + 1 - len(maps) for place in shown)])
    return np.concatenate([maps, np.full((lacking, *maps.shape[1:]), NONE, np.int8)])[list(shown)]


def _small(path: Path, shown: Sequence[int]) -> Bytes | None:
    """A benchmark's maps, which are kept as fractions at full size."""
    if not path.is_file():
        return None
    maps = _read(path)["maps"][list(shown)].astype(np.float32)
    share = min(1.0, SIDE / max(maps.shape[1:]))
    height, width = (max(1, round(share * side)) for side in maps.shape[1:])
    small = [np.asarray(Image.fromarray(one).resize((width, height), Image.Resampling.BOX)) for one in maps]
    array = np.stack(small) if small else np.zeros((0, height, width), np.float32)
    most = np.abs(array).max((1, 2), keepdims=True, initial=0)
    found: Bytes = np.rint(127 * array / np.where(most > 0, most, 1)).astype(np.int8)
    return found


def _joined(found: Sequence[Bytes | None], counts: Sequence[int]) -> Bytes:
    shape = next(one.shape[1:] for one in found if one is not None)
    parts = [
        np.full((count, *shape), NONE, np.int8) if one is None else one
        for one, count in zip(found, counts, strict=True)
    ]
    return np.concatenate(parts)


def _boxes(boxes: npt.NDArray[np.int64], roles: npt.NDArray[np.int8]) -> tuple[Outline, ...]:
    """Just outside each object's box, so that nothing of it is hidden."""
    found = []
    for (top, bottom, left, right), role in zip(boxes.tolist(), roles.tolist(), strict=True):
        if role in ROLES:
            width, height = right - left + 1.3, bottom - top + 1.3
            found.append(Outline(ROLES[role], f"M{left - 0.65:g} {top - 0.65:g}h{width:g}v{height:g}h{-width:g}z"))
    return tuple(found)


def border(mask: npt.NDArray[np.bool_]) -> str:
    """The edges between a mask and what is around it, as one path of straight runs."""
    padded = np.pad(mask, 1)
    lines = []
    for across, flat in ((False, padded), (True, padded.T)):
        change = flat[1:, 1:-1] != flat[:-1, 1:-1]  # between a line and the one above it
        for line, row in enumerate(change):
            ends = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
            for start, stop in zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True):
                lines.append(f"M{line} {start}v{stop - start}" if across else f"M{start} {line}h{stop - start}")
    return "".join(lines)
