"""The report of an audit: the verdict, a table for each kind of metric, the maps themselves, and what it all cost."""

import base64
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from saliometer import judgement, registry
from saliometer.engine.judged import Judged
from saliometer.engine.run import Run
from saliometer.files import put
from saliometer.judgement import Column, number
from saliometer.progress import duration

SHOWN = 12  # images in the gallery


@dataclass(frozen=True)
class Cell:
    """A method under a metric: its mean, half of the interval, and how it stands to the controls."""

    text: str
    half: str
    stands: str  # 'above', 'below' or ''
    undefined: int


@dataclass(frozen=True)
class Table:
    kind: str
    question: str
    heads: list[dict[str, str]]
    rows: list[dict[str, Any]]


def write(run: Run, path: Path | None = None) -> Path:
    """Write the report, by default as report.html in the run's folder; the file is there in full or not at all."""
    path = path or run.folder / "report.html"
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder: the report wants a file, such as '{path / 'report.html'}'")
    put(path, page(run).encode())
    return path


def page(run: Run) -> str:
    from saliometer.report.templates import environment

    judged = Judged(run, [])
    if not len(judged.rows):
        raise ValueError(f"the run '{run.folder}' has no scores yet: run `saliometer audit` to its end first")
    return (
        environment()
        .get_template("audit.html")
        .render(
            name=run.folder.resolve().name,
            manifest=run.manifest,
            verdict=judged.verdict(),
            facts=_facts(judged),
            tables=[_table(judged, kind) for kind in judgement.KINDS if _columns(judged, kind)],
            gallery=_gallery(judged),
            labels=[*judged.methods, *judged.controls],
            warnings=judged.problems(),
            failures=list(run.failures().items()),
            costs=_costs(judged),
            metrics=_definitions(judged),
            provenance=_provenance(run),
        )
    )


def _columns(judged: Judged, kind: str) -> list[Column]:
    return [c for c in judged.columns if judgement.kind_of(c.metric) == kind and judgement.shown(c.metric)]


def _facts(judged: Judged) -> list[tuple[str, str]]:
    request, model = judged.run.manifest["request"], judged.run.manifest["model"]
    images = len(judged.columns[0].images) if judged.columns else 0
    words = {
        "predicted": "the class the model predicts",
        "label": "the true class",
        "least": "the least probable class",
    }
    return [
        ("Model", f"{model['name']}, {model.get('classes', '?')} classes, {model['parameters']:,} parameters"),
        ("Images", f"{images} of {request['images']}" + (f", {request['condition']}" if request["condition"] else "")),
        ("Explained class", f"{request['target']}: {words[request['target']]}"),
        ("Methods", f"{len(judged.methods)}, and {len(judged.controls)} controls"),
        ("Maps are read as", ", ".join(request["normalisations"])),
        ("Seed", str(request["seed"])),
    ]


def _table(judged: Judged, kind: str) -> Table:
    columns = _columns(judged, kind)
    several = {c.metric for c in columns if sum(o.metric == c.metric for o in columns) > 1}
    heads = [
        {
            "name": c.metric, "arrow": f"{c.better} is better" if c.better else "",
            "stage": c.definition.partition("(")[0] if c.metric in several else "", "definition": c.definition,
        }
        for c in columns
    ]  # fmt: skip
    rows = []
    for method in [*judged.methods, *judged.controls]:
        control = method in judged.controls
        own = bool(judged.run.manifest["methods"][method].get("own"))
        cells = [_cell(judged, column, method) for column in columns]
        if any(cell.text != "–" for cell in cells):
            rows.append({"method": method, "control": control, "own": own, "cells": cells})
    return Table(kind, judgement.KINDS[kind], heads, rows)


def _cell(judged: Judged, column: Column, method: str) -> Cell:
    if method not in column.methods:
        return Cell("–", "", "", 0)
    found = column.estimate(method)
    half = max(found.high - found.value, found.value - found.low)
    stands = judgement.stands(column, method, judged.controls)
    text = number(column.metric, found.value)
    width = "" if math.isnan(half) else f"±{number(column.metric, half)}"
    return Cell("–" if text == "-" else text, width, stands, column.undefined(method))


def _gallery(judged: Judged) -> list[dict[str, Any]]:
    """The first images with every method's map of them."""
    from saliometer.report.figures._pictures import map_png

    run = judged.run
    found: list[dict[str, Any]] = []
    for setting in run.manifest["request"]["settings"]:
        for path in sorted((run.folder / "thumbs" / setting / "images").glob("*.npz")):
            if len(found) >= SHOWN:
                break
            with np.load(path, allow_pickle=False) as kept:
                scene = {key: kept[key] for key in kept.files}
            maps = {}
            for method in [*judged.methods, *judged.controls]:
                place = path.parent.parent / run.slug(method) / path.name
                if place.is_file():
                    with np.load(place, allow_pickle=False) as kept:
                        maps[method] = kept["maps"] / 127.0
            for i in range(min(len(scene["ids"]), SHOWN - len(found))):
                pixels = scene["images"][i]
                picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)
                found.append(
                    {
                        "id": str(scene["ids"][i]),
                        "label": int(scene["labels"][i]),
                        "target": int(scene["targets"][i]),
                        "image": _jpeg(picture),
                        "maps": [
                            (method, map_png(maps[method][i]) if method in maps else "")
                            for method in [*judged.methods, *judged.controls]
                        ],
                    }
                )
    return found


def _jpeg(picture: Image.Image) -> str:
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"


def _costs(judged: Judged) -> list[dict[str, str]]:
    return [
        {
            "what": what, "seconds": duration(cost["seconds"]) if cost["seconds"] >= 1 else "under 1 s",
            "passes": f"{cost['passes']:,.0f}", "shared": f"{cost['passes_shared']:,.0f}",
        }
        for what, cost in judged.costs().items()
    ]  # fmt: skip


def _definitions(judged: Judged) -> list[dict[str, str]]:
    found = []
    for column in judged.columns:
        if column.metric not in registry.metrics:
            continue
        entry = registry.metrics[column.metric]
        constant, zero, single = entry.facts.degenerate
        found.append(
            {
                "metric": column.metric, "definition": column.definition, "summary": entry.summary,
                "better": entry.facts.better,
                "degenerate": f"Constant map: {constant}. All zero: {zero}. One pixel: {single}. NaN: invalid.",
            }
        )  # fmt: skip
    return found


def _provenance(run: Run) -> list[tuple[str, list[str]]]:
    manifest = run.manifest
    model = manifest["model"]
    return [
        ("Folder", [str(run.folder)]),
        ("Created", [manifest["created"]]),
        ("Commands", manifest["commands"]),
        ("saliometer", [manifest["saliometer"]]),
        ("Versions", [f"{name} {version}" for name, version in manifest["versions"].items()]),
        ("Model weights", [f"{model['weights']}; SHA-256 {model['sha256']}"]),
        ("Input", [f"{key} {value}" for key, value in model.get("preprocessing", {}).items()]),
        ("Images (SHA-256)", [manifest["fixed"]["images"]]),
        ("Model passes", [f"{manifest['passes']:,} images through the network"]),
        ("Methods", [f"{name}: {facts['key'][:16]}" for name, facts in manifest["methods"].items()]),
    ]
