"""What stands around the figures: what was measured, how far the run is, what went wrong, and what it was made with."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from saliometer.engine.judged import Judged
from saliometer.engine.run import Run
from saliometer.report import words
from saliometer.report.book import Cost, Failed
from saliometer.report.lost import failures, metrics


@dataclass(frozen=True)
class Progress:
    """Units (one method on one range of images) that are scored, that failed, and that were asked for."""

    scored: int
    failed: int
    total: int

    @property
    def finished(self) -> bool:
        return self.scored + self.failed >= self.total


def progress(run: Run) -> Progress:
    unit = int(run.manifest["fixed"]["unit"])
    if run.manifest["request"].get("kind") == "audit":
        units = -(-int(run.manifest["request"]["count"]) // unit)
        lost = [text for texts in run.failures().values() for text in texts if not metrics(text)]
        return Progress(len(list(run.parts())), len(lost), units * len(run.counted))
    units = sum(-(-count // unit) * max(1, _models(run, setting)) for setting, count in _counts(run).items())
    failed = sum(len(tracebacks) for tracebacks in run.failures().values())
    return Progress(len(list(run.parts())), failed, units * len(run.counted))


def _counts(run: Run) -> dict[str, int]:
    """How many images of each setting were asked for."""
    if kept := run.manifest.get("counts"):
        return dict(kept)
    request = run.manifest["request"]  # a run of before they were kept
    counts = {setting: words.SETTINGS[setting].buckets * request["per_bucket"] for setting in request["settings"]}
    return {setting: min(count, request["limit"] or count) for setting, count in counts.items()}


def _models(run: Run, setting: str) -> int:
    """How many models of a setting the run explains; their files are named SETTING or SETTING.what.else."""
    return sum(name.partition(".")[0] == setting for name in run.manifest["fixed"]["weights"])


def failed(run: Run) -> list[Failed]:
    """A line for each method, or metric of one, that broke."""
    found = []
    every = run.failures()
    for name, reason in failures(run)[0].items():
        method = next(m for m in sorted(every, key=len, reverse=True) if name == m or name.startswith(f"{m}, "))
        found.append(Failed(name, len(every[method]), reason, every[method][0]))
    return found


def left_out(run: Run) -> list[str]:
    """Methods that do not fit the model, in words."""
    return [f"{name} was left out: {reason.partition(': ')[2]}" for name, reason in failures(run)[1].items()]


def unfinished(run: Run) -> str:
    """What to say of a run that is not at its end; '' of one that is."""
    made = progress(run)
    if made.finished:
        return ""
    lost = f", {made.failed} failed" if made.failed else ""
    return (
        f"This run is not finished: {made.scored} of {made.total} units are scored{lost} (a unit is one method on up "
        f"to {run.manifest['fixed']['unit']} images of one setting). The numbers below are made from what is there. "
        "The same command goes on where it stopped."
    )


def costs(run: Run) -> list[Cost]:
    """What each method of a benchmark took, where the run kept it."""
    kept = run.manifest.get("costs", {})
    return [Cost(method, cost["seconds"], cost["passes"], 0.0) for method, cost in kept.items()]


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
        ("Models", ", ".join(sorted(rows["model"].unique().to_pylist()))),
        ("Images", f"{images} ({request['per_bucket']} of each bucket{limit})"),
        ("Methods", f"{len(methods) - controls}, and {controls} controls"),
        ("Definition", definitions[0] + (f"; below also {', '.join(definitions[1:])}" if definitions[1:] else "")),
        ("Scored region", f"{request['region']}: an object counts as {words.REGIONS[request['region']]}"),
        ("Explained class", f"{request['target']}: {words.TARGETS[request['target']]}"),
        ("Seed", str(request["seed"])),
    ]


def audited(judged: Judged) -> list[tuple[str, str]]:
    """(name, value in words)."""
    request, model = judged.run.manifest["request"], judged.run.manifest["model"]
    images = len(judged.columns[0].images) if judged.columns else 0
    return [
        ("Model", f"{model['name']}, {model.get('classes', '?')} classes, {model['parameters']:,} parameters"),
        ("Images", f"{images} of {request['images']}" + (f", {request['condition']}" if request["condition"] else "")),
        ("Explained class", f"{request['target']}: {words.TARGETS[request['target']]}"),
        ("Methods", f"{len(judged.methods)}, and {len(judged.controls)} controls"),
        ("Maps are read as", ", ".join(request["normalisations"])),
        ("Seed", str(request["seed"])),
    ]


def audit_provenance(run: Run) -> list[tuple[str, list[str]]]:
    """(name, lines)."""
    manifest = run.manifest
    model = manifest["model"]
    return [
        ("Folder", [str(run.folder)]),
        ("Created", [manifest["created"]]),
        ("Commands", manifest["commands"]),
        ("saliometer", [manifest["saliometer"]]),
        ("Versions", [f"{name} {version}" for name, version in manifest["versions"].items()]),
        ("Request", [f"{name}: {value}" for name, value in manifest["request"].items()]),
        ("Seed", [str(manifest["request"]["seed"])]),
        ("Model weights", [f"{model['weights']}; SHA-256 {model['sha256']}"]),
        ("Input", [f"{key} {value}" for key, value in model.get("preprocessing", {}).items()]),
        ("Images (SHA-256)", [manifest["fixed"]["images"]]),
        ("Model passes", [f"{manifest['passes']:,} images through the network"]),
        ("Methods", [f"{name}: {facts['key'][:16]}" for name, facts in manifest["methods"].items()]),
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
        ("Request", [f"{name}: {value}" for name, value in manifest["request"].items()]),
        ("Seed", [str(manifest["request"]["seed"])]),
        (
            "Task",
            [
                f"{fixed['task']}, sampler {fixed['sampler']}"
                + (f", glyphs {fixed['glyphs']}" if "glyphs" in fixed else "")
            ],
        ),
        ("Model weights (SHA-256)", [f"{setting} {digest}" for setting, digest in fixed["weights"].items()]),
        ("Model passes", [f"{passes:,} images through a network"]),
        ("Methods", [f"{name}: {facts['key'][:16]}" for name, facts in manifest["methods"].items()]),
    ]
