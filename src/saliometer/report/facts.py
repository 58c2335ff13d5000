"""What stands around the figures: what was measured, how far the run is, what went wrong, and what it was made with."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from saliometer.engine.run import Run
from saliometer.report import words
from saliometer.summary import oddities

ODD = {
    "nan map": "maps were not finite numbers and scored 0",
    "zero map": "maps were zero everywhere and scored 0",
    "constant map": "maps had the same value everywhere, so they point nowhere",
}


@dataclass(frozen=True)
class Progress:
    """Units (one method on one range of images) that are scored, that failed, and that were asked for."""

    scored: int
    failed: int
    total: int

    @property
    def finished(self) -> bool:
        return self.scored + self.failed >= self.total


@dataclass(frozen=True)
class Failed:
    """One method's failures: how many units, the last line of the first traceback, and that traceback."""

    method: str
    count: int
    reason: str
    traceback: str


def progress(run: Run) -> Progress:
    request, unit = run.manifest["request"], run.manifest["fixed"]["unit"]
    counts = [words.SETTINGS[setting].buckets * request["per_bucket"] for setting in request["settings"]]
    counts = [min(count, request["limit"] or count) for count in counts]
    units = sum(-(-count // unit) for count in counts)
    failed = sum(len(tracebacks) for tracebacks in run.failures().values())
    return Progress(len(list(run.parts())), failed, units * len(run.counted))


def failed(run: Run) -> list[Failed]:
    found = []
    for method, tracebacks in run.failures().items():
        lines = tracebacks[0].strip().splitlines() or ["no reason was kept"]
        found.append(Failed(method, len(tracebacks), lines[-1], tracebacks[0]))
    return found


def odd(rows: pa.Table) -> list[tuple[str, str]]:
    """(method, what is odd about it)."""
    found = []
    for method, counts in oddities(rows).items():
        found += [(method, f"{count} {ODD[word]}") for word, count in counts.items() if word in ODD]
        if "random" in counts:
            found.append((method, "gives another map when called again on the same images: its scores are one draw"))
    return found


def measured(run: Run, rows: pa.Table, definitions: list[str]) -> list[tuple[str, str]]:
    """(name, value in words)."""
    request, fixed = run.manifest["request"], run.manifest["fixed"]
    methods = run.manifest["methods"].values()
    controls = sum(method["control"] for method in methods)
    images = len(rows.select(["setting", "sample"]).group_by(["setting", "sample"]).aggregate([]))
    limit = f", at most {request['limit']} a setting" if request["limit"] else ""
    return [
        ("Task", f"{rows['task'][0].as_py()} (benchmark version {fixed['task']})"),
        ("Settings", f"{len(request['settings'])}: {', '.join(request['settings'])}"),
        ("Images", f"{images} ({request['per_bucket']} of each bucket{limit})"),
        ("Methods", f"{len(methods) - controls}, and {controls} controls"),
        ("Definition", definitions[0] + (f"; below also {', '.join(definitions[1:])}" if definitions[1:] else "")),
        ("Scored region", f"{request['region']}: an object counts as {words.REGIONS[request['region']]}"),
        ("Explained class", f"{request['target']}: {words.TARGETS[request['target']]}"),
        ("Seed", str(request["seed"])),
    ]


def provenance(run: Run) -> list[tuple[str, list[str]]]:
    """(name, lines)."""
    manifest: dict[str, Any] = run.manifest
    fixed, passes = manifest["fixed"], manifest["passes"]
    return [
        ("Folder", [str(run.folder)]),
        ("Created", [manifest["created"]]),
        ("Commands", manifest["commands"]),
        ("saliometer", [manifest["saliometer"]]),
        ("Versions", [f"{name} {version}" for name, version in manifest["versions"].items()]),
        ("Device", [f"{device}, batches of {size}" for device, size in manifest.get("batches", {}).items()]),
        ("Seed", [str(manifest["request"]["seed"])]),
        ("Task", [f"{fixed['task']}, sampler {fixed['sampler']}, glyphs {fixed['glyphs']}"]),
        ("Model weights (SHA-256)", [f"{setting} {digest}" for setting, digest in fixed["weights"].items()]),
        ("Model passes", [f"{passes:,} images through a network"]),
        ("Methods", [f"{name}: {facts['key'][:16]}" for name, facts in manifest["methods"].items()]),
    ]
