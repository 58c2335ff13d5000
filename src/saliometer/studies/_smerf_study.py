"""SMERF's study as a folder: a benchmark for each condition, identifiability, and how IOU hangs on K."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from saliometer.engine.run import Run
from saliometer.engine.run import opened as open_run
from saliometer.files import put
from saliometer.identifiability import identifiability, over_models
from saliometer.studies._claims import as_json, claims_markdown
from saliometer.studies._smerf_conditions import judged
from saliometer.studies._smerf_tables import tables
from saliometer.summary import Scores, Uncertain

CONDITIONS: dict[str, dict[str, Any]] = {  # part of the study, and its folder -> which models it explains
    "black": {},
    "noise": {"background": "noise"},
    "natural": {"background": "natural"},
    "alexnet": {"arch": "alexnet"},
    "vgg16": {"arch": "vgg16"},
    "robust": {"robust": True},
}
IDENTIFY, SWEEP = "identify", "sweep.parquet"


@dataclass(frozen=True, eq=False)
class Study:
    """What was run, as far as it is there."""

    folder: Path
    scale: str
    runs: Mapping[str, Run]  # part -> its benchmark, in the order of CONDITIONS; only those with rows
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # part -> models' files -> of their cards
    missing: Mapping[str, str] = field(default_factory=dict)  # part -> why it was not run
    failed: Mapping[str, str] = field(default_factory=dict)  # part and method -> message

    def rows(self, part: str) -> pa.Table:
        """One condition's, of methods as they are: no other budgets or seeds of theirs."""
        return self.runs[part].rows().filter(pc.field("condition") == "")

    @cached_property
    def identified(self) -> pa.Table | None:
        """Rows of `identify`; None where it was not run."""
        path = self.folder / IDENTIFY
        return open_run(path).rows() if (path / "run.json").is_file() else None

    @cached_property
    def told(self) -> Scores | None:
        """How often a method's maps tell the settings apart, by bucket; None where `identify` was not run."""
        scores = None if self.identified is None else identifiability(self.identified)
        return scores if scores and scores.cells else None

    def told_over_models(self) -> dict[str, Uncertain]:
        """The same with intervals over images and, apart from them, over trainings; {} with one of each setting."""
        return {} if self.identified is None else over_models(self.identified)

    @cached_property
    def sweep(self) -> pa.Table | None:
        """PIOU with another number of pixels K than the object has: metric `piou`, condition `k(100)`.

        Top pixels are exact in every definition, `authors` too, which here is only how a map is read.
        """
        path = self.folder / SWEEP
        return pq.read_table(path) if path.is_file() else None

    def claims(self) -> list[dict[str, Any]]:
        """All 29 (smerf.md 7.7)."""
        return judged({part: self.rows(part) for part in self.runs}, self.models, self.missing, self.sweep)

    def write(self) -> list[Path]:
        """Tables and claims as files in the study's folder."""
        written, claims = [self.folder / "tables.md", self.folder / "claims.json"], self.claims()
        made = tables({part: self.rows(part) for part in self.runs}, self.told, self.sweep, self.told_over_models())
        put(written[0], f"{made}\n\n{claims_markdown(claims)}\n".encode())
        put(written[1], (as_json(claims) + "\n").encode())
        return written


def opened(folder: Path) -> Study:
    """The study of a folder."""
    told = read(folder)
    there = {part: folder / part for part in CONDITIONS if (folder / part / "run.json").is_file()}
    runs = {part: open_run(path) for part, path in there.items()}
    runs = {part: run for part, run in runs.items() if run.finished_any()}
    return Study(folder, told["scale"], runs, told.get("models", {}), told.get("missing", {}))


def read(folder: Path) -> dict[str, Any]:
    """What study.json says."""
    try:
        told: dict[str, Any] = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no readable study in '{folder}' ({error}): run `saliometer reproduce smerf` first"
        ) from error
    return told
