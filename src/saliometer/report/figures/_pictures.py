"""Thumbnails as small files: images in grey or colour, maps from blue (against the class) to red (for it)."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from PIL import Image

from saliometer.engine.run import Run
from saliometer.report.view import View

PRIMARY, SECONDARY, NEITHER = 1, 2, 0  # roles, as saliometer.types has them
LEVELS = 15  # shades of each sign: the eye sees no more in a thumbnail, and the file stays small
ANCHORS = (
    (33, 102, 172),
    (103, 169, 207),
    (209, 229, 240),
    (255, 255, 255),
    (253, 219, 199),
    (239, 138, 98),
    (178, 24, 43),
)
STROKES = {
    PRIMARY: 'stroke="#00a878" stroke-width="1.3"',
    SECONDARY: 'stroke="#f08c00" stroke-width="1.3" stroke-dasharray="2.2 1.1"',
    NEITHER: 'stroke="#8a8a8a" stroke-width="1" stroke-dasharray="1 1.5"',
}
Values = dict[tuple[str, str], float]  # (sample, method) -> value


@dataclass(frozen=True)
class Map:
    """One method's map of one image, with its scores; no picture where the method has none."""

    method: str
    picture: str
    pafl: float
    safl: float


@dataclass(frozen=True)
class Scene:
    """One image of one bucket with some methods' maps of it; pictures and outlines are data URIs."""

    bucket: str
    label: int
    target: int
    roles: frozenset[int]
    image: str
    outlines: str
    maps: tuple[Map, ...]


def scenes(view: View, setting: str, methods: Sequence[str]) -> list[Scene]:
    """One for each bucket, with the maps of these methods; none where the run kept no thumbnails of the setting."""
    path = view.run.folder / "thumbs" / setting / "scene.npz"
    if not path.is_file():
        return []
    with np.load(path, allow_pickle=False) as kept:
        scene = {key: kept[key] for key in kept.files}
    pictures = {method: _maps(view.run, setting, method) for method in methods}
    pafl, safl = (_values(view, metric, setting) for metric in ("pafl", "safl"))
    return [
        Scene(
            bucket=str(scene["buckets"][place]),
            label=int(scene["labels"][place]),
            target=int(scene["targets"][place]),
            roles=frozenset(scene["roles"][place].tolist()),
            image=image_uri(scene["images"][place]),
            outlines=outlines(
                scene["boxes"][place].tolist(), scene["roles"][place].tolist(), scene["images"].shape[1:3]
            ),
            maps=tuple(
                Map(
                    method,
                    map_png(shown[place]) if shown is not None else "",
                    pafl.get((str(sample), method), np.nan),
                    safl.get((str(sample), method), np.nan),
                )
                for method, shown in pictures.items()
            ),
        )
        for place, sample in enumerate(scene["ids"])
    ]


def _maps(run: Run, setting: str, method: str) -> npt.NDArray[np.float16] | None:
    path = run.thumbnails(setting, method)
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as kept:
        return kept["maps"]  # type: ignore[no-any-return]


def _values(view: View, metric: str, setting: str) -> Values:
    wanted = (pc.field("metric") == metric) & (pc.field("definition") == view.definition)
    rows = view.rows.filter(wanted & (pc.field("setting") == setting))
    keys = zip(rows["sample"].to_pylist(), rows["method"].to_pylist(), strict=True)
    return dict(zip(keys, rows["value"].to_pylist(), strict=True))


def _palette() -> list[int]:
    place = np.linspace(0, len(ANCHORS) - 1, 2 * LEVELS + 1)
    channels = [np.interp(place, range(len(ANCHORS)), channel) for channel in zip(*ANCHORS, strict=True)]
    return [round(float(value)) for shade in zip(*channels, strict=True) for value in shade]


def map_png(values: npt.NDArray[np.floating[Any]]) -> str:
    """Colour grows with the square root of the value: much of a map's total can lie in its faint pixels."""
    signed = values.astype(np.float64)
    shades = np.rint(np.sign(signed) * np.sqrt(abs(signed)) * LEVELS).clip(-LEVELS, LEVELS) + LEVELS
    picture = Image.fromarray(shades.astype(np.uint8)).convert("P")
    picture.putpalette(_palette())
    return _png(picture)


def image_uri(pixels: npt.NDArray[np.uint8]) -> str:
    """(H, W) drawn shapes as PNG, (H, W, 3) as JPEG, a third of its size for photographs and noise."""
    if pixels.ndim == 2:
        return _png(Image.fromarray(pixels))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=88, subsampling=0)
    return _uri("image/jpeg", file.getvalue())


def _png(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return _uri("image/png", file.getvalue())


def outlines(boxes: Sequence[Sequence[int]], roles: Sequence[int], size: Sequence[int] = (64, 64)) -> str:
    """Just outside each object's box, so that nothing of it is hidden; `size` is that of the image, rows first."""
    there = [(box, role) for box, role in zip(boxes, roles, strict=True) if role in STROKES]
    drawn = "".join(_outline(box, STROKES[role]) for box, role in there)
    text = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[1]} {size[0]}" fill="none">{drawn}</svg>'
    return _uri("image/svg+xml", text.encode())


def _outline(box: Sequence[int], stroke: str) -> str:
    top, bottom, left, right = box
    edge = 0.65
    width, height = right - left + 2 * edge, bottom - top + 2 * edge
    return f'<rect x="{left - edge}" y="{top - edge}" width="{width}" height="{height}" {stroke}/>'


def _uri(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
