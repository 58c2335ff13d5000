"""SMERF's study as a folder: a benchmark for each condition, identifiability, and how IOU hangs on K."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from saliometer.engine.run import Run
from saliometer.engine.run import opened as open_run

CONDITIONS = {  # part of the study, and the name of its folder -> which models it explains
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

    def rows(self, part: str) -> pa.Table:
        """One condition's, of methods as they are: no other budgets or seeds of theirs."""
        return self.runs[part].rows().filter(pc.field("condition") == "")

    @cached_property
    def identified(self) -> pa.Table | None:
        """Rows of `identify`; None where it was not run."""
        path = self.folder / IDENTIFY
        return open_run(path).rows() if (path / "run.json").is_file() else None

    @cached_property
    def sweep(self) -> pa.Table | None:
        """PIOU with another number of pixels K than the object has: metric `piou`, condition `k(100)`."""
        path = self.folder / SWEEP
        return pq.read_table(path) if path.is_file() else None


def opened(folder: Path) -> Study:
    """The study of a folder."""
    path = folder / "study.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no readable study in '{folder}' ({error}): run `saliometer reproduce smerf` first"
        ) from error
    there = {part: folder / part for part in CONDITIONS if (folder / part / "run.json").is_file()}
    runs = {part: open_run(path) for part, path in there.items()}
    return Study(folder, told["scale"], {part: run for part, run in runs.items() if run.finished_any()})
