"""COSE's study as a folder: models with their cards, an audit of each in parts, and what their rows say."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from saliometer import results
from saliometer.engine.run import Run
from saliometer.engine.run import opened as open_run
from saliometer.files import put
from saliometer.studies._claims import as_json, claims_markdown
from saliometer.studies._cose_claims import judged
from saliometer.studies._cose_evidence import Evidence, Trained, named
from saliometer.studies._cose_figures import Gallery, galleries
from saliometer.studies._cose_tables import markdown

PARTS = ("many", "few", "controls")
KEPT = ("data", "label", "arch", "init", "frozen", "role", "accuracy", "checkpoints", "untrained")  # of a model


@dataclass(frozen=True, eq=False)
class Study:
    """What was run, as far as it is there."""

    folder: Path
    scale: str
    models: Sequence[Mapping[str, Any]]  # as study.json has them
    notes: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def trained(self) -> list[Trained]:
        return [Trained(**{key: one[key] for key in KEPT}) for one in self.models]

    def runs(self, model: Mapping[str, Any]) -> dict[str, Run]:
        """Part -> its audit, of those that were begun."""
        there = {part: self.folder / f"{model['folder']}.{part}" for part in PARTS}
        return {part: open_run(path) for part, path in there.items() if (path / "run.json").is_file()}

    @cached_property
    def evidence(self) -> Evidence:
        tables = {
            (one["data"], one["label"]): [rows for run in self.runs(one).values() if len(rows := finished_rows(run))]
            for one in self.models
        }
        return Evidence(self.trained, {where: some for where, some in tables.items() if some})

    def costs(self) -> dict[str, dict[str, float]]:
        """Model -> method -> seconds for all of its maps and pairs."""
        found: dict[str, dict[str, float]] = {}
        for one in self.models:
            held = found.setdefault(f"{one['data']}, {one['label']}", {})
            for run in self.runs(one).values():
                rows = run.rows()
                spent = rows.filter(pc.equal(rows["metric"].cast(pa.string()), "cost.seconds"))
                for method, seconds in zip(spent["method"].to_pylist(), spent["value"].to_pylist(), strict=True):
                    held[named(method)] = round(held.get(named(method), 0.0) + seconds, 3)
        return found

    @cached_property
    def galleries(self) -> list[Gallery]:
        """The pictures that were kept of each model."""
        return galleries(self)

    @cached_property
    def _claims(self) -> list[dict[str, Any]]:
        return judged(self.evidence)

    def claims(self) -> list[dict[str, Any]]:
        """All 14 (cose.md 7)."""
        return self._claims

    def write(self) -> list[Path]:
        """Tables and claims as files in the study's folder."""
        written = [self.folder / "tables.md", self.folder / "claims.json"]
        made = markdown(self.evidence, self.models, self.notes)
        put(written[0], f"{made}\n\n## Claims\n\n{claims_markdown(self.claims())}\n".encode())
        put(written[1], (as_json(self.claims()) + "\n").encode())
        return written


def finished_rows(run: Run) -> pa.Table:
    """Of methods that have explained every image."""
    units = -(-int(run.manifest["request"]["count"]) // int(run.manifest["fixed"]["unit"]))
    by_folder: dict[Path, list[Path]] = {}
    for path in run.parts():
        by_folder.setdefault(path.parent, []).append(path)
    return results.read([path for paths in by_folder.values() if len(paths) == units for path in paths])


def opened(folder: Path) -> Study:
    """The study of a folder."""
    told = read(folder)
    return Study(folder, told["scale"], told.get("models", []), told.get("notes", []), told.get("failed", {}))


def read(folder: Path) -> dict[str, Any]:
    """What study.json says."""
    try:
        told: dict[str, Any] = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable study in '{folder}' ({error}): run `saliometer reproduce cose` first") from error
    return told
