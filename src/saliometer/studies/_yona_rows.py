"""Rows of one method, gathered as they come; the columns that a study leaves empty are not asked for."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from torch import Tensor

from saliometer.results import COLUMNS, SCHEMA
from saliometer.studies._yona_evidence import TASKS
from saliometer.summary import Estimate


class Rows:
    """Of one method; `method` is '' for what belongs to models or images alone."""

    def __init__(self, method: str) -> None:
        self.method = method
        self._columns: dict[str, list[str]] = {name: [] for name in COLUMNS if name != "value"}
        self._values: list[float] = []

    def add(self, task: str, model: str, metric: str, value: float, *, note: str = "", **which: str) -> None:
        """One number; `which` are definition, region, target, condition."""
        self._append(task, model, metric, [value], [""], [""], note, which)

    def estimate(self, task: str, model: str, metric: str, one: Estimate, **which: str) -> None:
        """A number with its interval."""
        for end, value in (("", one.value), (".low", one.low), (".high", one.high)):
            self.add(task, model, f"{metric}{end}", value, **which)

    def by_seed(self, task: str, group: str, metric: str, values: Tensor, **which: str) -> None:
        """One number for each model of a group."""
        for seed, value in enumerate(values.tolist()):
            self.add(task, model(group, seed), metric, value, **which)

    def by_image(
        self,
        task: str,
        model: str,
        metric: str,
        values: Tensor,
        ids: Sequence[str],
        buckets: Sequence[str],
        **which: str,
    ) -> None:
        """One number for each image."""
        self._append(task, model, metric, values.tolist(), ids, buckets, "", which)

    def _append(
        self, task: str, model: str, metric: str, values: Sequence[float], ids: Sequence[str], buckets: Sequence[str],
        note: str, which: dict[str, str],
    ) -> None:  # fmt: skip
        name, setting = TASKS[task]
        told = {"task": name, "setting": setting, "model": model, "method": self.method, "metric": metric, "note": note}
        for column, some in self._columns.items():
            if column in ("sample", "bucket"):
                some.extend(ids if column == "sample" else buckets)
            else:
                some.extend([told.get(column, which.get(column, ""))] * len(values))
        self._values.extend(values)

    def table(self) -> pa.Table:
        columns = [
            pa.array(np.array(self._values, dtype=np.float64))
            if name == "value"
            else pa.array(self._columns[name], pa.string()).dictionary_encode()
            for name in COLUMNS
        ]
        return pa.table(columns, names=list(COLUMNS)).cast(SCHEMA)


def model(group: str, seed: int) -> str:
    """A model as rows name it."""
    return f"{group}(seed={seed})"
