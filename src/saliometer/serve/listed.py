"""The runs and studies below a folder, each in a line; one that cannot be read is listed with its error."""

import html
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from saliometer.engine.run import Run, opened
from saliometer.report.facts import progress
from saliometer.report.words import SETTINGS
from saliometer.state import is_audit, is_study

INSIDE = {"rows", "thumbs", "failures", "models"}  # of a run: no runs below
VERDICT = re.compile(r'class="verdict"[^>]*>(.*?)</p>', re.S)


@dataclass(frozen=True)
class Listed:
    """A line of the list."""

    name: str  # the path below the folder; '' for the folder itself
    kind: str
    created: str
    about: str = ""  # model or settings
    methods: str = ""
    images: str = ""
    state: str = ""
    verdict: str = ""
    error: str = ""

    @property
    def link(self) -> str:
        return f"/report/{quote(self.name)}"


def listed(root: Path) -> list[Listed]:
    """Newest first."""
    found = [_line(root, folder) for folder in folders(root)]
    return sorted(found, key=lambda one: (one.created, one.name), reverse=True)


def folders(root: Path) -> Iterator[Path]:
    """Every folder with a run or a study in it; links are not followed."""
    for place, inside, files in os.walk(root, followlinks=False):
        known = "run.json" in files
        inside[:] = sorted(name for name in inside if not name.startswith(".") and not (known and name in INSIDE))
        if (known or "study.json" in files) and _within(root, Path(place)):
            yield Path(place)


def found(root: Path, name: str) -> Path | None:
    """The folder of that name, if it holds a run or study and lies in the root in truth, whatever links are in it."""
    try:
        folder = (root / name).resolve()
        return folder if folder.is_relative_to(root.resolve()) and _within(root, folder) else None
    except (OSError, ValueError):  # a name that no file can have
        return None


def _within(root: Path, folder: Path) -> bool:
    """Whether it holds a run or study, and no file that is read as such leads out of the root."""
    files = [folder / name for name in ("run.json", "study.json", "report.html") if (folder / name).exists()]
    there = [file for file in files if file.name != "report.html"]
    return bool(there) and all(file.resolve().is_relative_to(root.resolve()) for file in files)


def stale(folder: Path) -> bool:
    """Whether the report is missing, or rows or failures have come since."""
    page = folder / "report.html"
    if not page.is_file():
        return True
    kept = (path.stat().st_mtime for kind in ("*.parquet", "failures/**/*") for path in folder.rglob(kind))
    return max(kept, default=0.0) > page.stat().st_mtime


def _line(root: Path, folder: Path) -> Listed:
    name = folder.relative_to(root).as_posix().removeprefix(".")
    try:
        told = _study(folder) if is_study(folder) else _run(opened(folder))
        return Listed(name, **told, verdict=_verdict(folder / "report.html"))
    except Exception as error:  # whatever is wrong with one run, the others are listed
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        return Listed(name, "", _when(folder), error=f"Cannot be read: {reason}")


def _run(run: Run) -> dict[str, str]:
    manifest = run.manifest
    request, methods = manifest["request"], manifest["methods"]
    controls = sum(bool(facts["control"]) for facts in methods.values())
    made = progress(run)
    failed = f", {made.failed} failed" if made.failed else ""
    return {
        "kind": request.get("kind", "bench"),
        "created": str(manifest["created"]),
        "about": f"{request['model']} on {request['images']}" if is_audit(run) else _settings(request),
        "methods": f"{len(methods) - controls}, and {controls} controls",
        "images": str(request["count"]) if is_audit(run) else _images(request),
        "state": ("finished" if made.finished else f"not finished: {made.scored} of {made.total}") + failed,
    }


def _settings(request: Mapping[str, Any]) -> str:
    named: list[str] = request["settings"]
    return f"all {len(named)} settings" if set(named) == set(SETTINGS) else ", ".join(named)


def _images(request: Mapping[str, Any]) -> str:
    if "per_bucket" not in request:
        return ""  # part of a study, which says it
    limit = f", at most {request['limit']} a setting" if request.get("limit") else ""
    return f"{request['per_bucket']} of each bucket{limit}"


def _study(folder: Path) -> dict[str, str]:
    told = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    runs = [opened(path.parent) for path in sorted(folder.glob("*/run.json"))]
    done = sum(progress(run).finished for run in runs)
    first = runs[0].manifest["request"] if runs else {}
    return {
        "kind": f"study {told['study']}",
        "created": max((str(run.manifest["created"]) for run in runs), default=_when(folder)),
        "about": f"scale {told['scale']}" + (f", {first['model']} on {first['images']}" if "model" in first else ""),
        "methods": str(max((len(run.manifest["methods"]) for run in runs), default=0)),
        "images": str(max(map(_count, runs), default=0)),
        "state": "finished" if runs and done == len(runs) else f"not finished: {done} of {len(runs)} parts",
    }


def _count(run: Run) -> int:
    return int(run.manifest["request"].get("count", sum(run.manifest.get("counts", {}).values())))


def _when(folder: Path) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(folder.stat().st_mtime))


def _verdict(page: Path) -> str:
    return _first_sentence(page, page.stat().st_mtime) if page.is_file() else ""


@lru_cache(maxsize=10_000)
def _first_sentence(page: Path, made: float) -> str:
    """Of the verdict, from a report that is there; `made` tells its versions apart."""
    said = VERDICT.search(page.read_text(encoding="utf-8", errors="replace"))
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", "", said.group(1))).split()) if said else ""
    return re.split(r"(?<=[.!?]) (?=\S)", text)[0]
