"""A finished audit: its run, what went wrong, and what its rows say."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from saliometer import judgement
from saliometer.cose import summary as cose
from saliometer.engine.run import Run
from saliometer.judgement import Column
from saliometer.sanity import summary as sanity

REASONS = 3  # why a metric has no value, in a warning
NAMED = 10  # pictures that could not be read, in a warning


@dataclass(repr=False)
class Judged:
    """An audit. `columns` are its metrics, each with a value for every method and image."""

    run: Run
    asked: list[str]  # the methods of this call; the run may hold more
    failed: dict[str, str] = field(default_factory=dict)  # method, or method and metric -> message
    left_out: dict[str, str] = field(default_factory=dict)  # methods that do not fit this model -> why

    @cached_property
    def rows(self) -> pa.Table:
        return self.run.rows()

    @cached_property
    def columns(self) -> list[Column]:
        return judgement.columns(self.rows) + cose.columns(self.coses) + sanity.columns(self.curves)

    @cached_property
    def coses(self) -> list[cose.Cose]:
        """What the pairs amount to, for each method and definition; empty where cose was not asked for."""
        return cose.coses(self.rows)

    @cached_property
    def curves(self) -> list[sanity.Curve]:
        """Similarity while layers are drawn anew, for each method and definition; empty where nobody asked for mprt."""
        return sanity.curves(self.rows)

    def pair_sentences(self) -> list[str]:
        """What COSE rests on, and how the randomisation tests are read."""
        return cose.sentences(self.coses) + sanity.sentences(self.curves)

    @property
    def controls(self) -> list[str]:
        return [name for name, facts in self.run.manifest["methods"].items() if facts["control"]]

    @cached_property
    def methods(self) -> list[str]:
        """Those that explain and have rows, best first."""
        there = {method for column in self.columns for method in column.methods}
        explaining = [name for name in self.run.manifest["methods"] if name in there and name not in self.controls]
        return [holding.method for holding in judgement.holdings(self.columns, explaining, self.controls)]

    def verdict(self) -> list[str]:
        return judgement.sentences(self.columns, self.methods, self.controls)

    def problems(self) -> list[str]:
        """What a reader must know of images and maps, in words."""
        said = []
        skipped: dict[str, str] = self.run.manifest.get("skipped", {})
        if skipped:
            named = "; ".join(f"{name} ({why})" for name, why in list(skipped.items())[:NAMED])
            more = f"; and {len(skipped) - NAMED} more" if len(skipped) > NAMED else ""
            many = (
                f"{len(skipped)} images could not be read and were"
                if len(skipped) > 1
                else "1 image could not be read and was"
            )
            said.append(f"{many} left out: {named}{more}")
        said += self._undefined()
        reasons: dict[str, list[str]] = {}
        for one in self.coses:
            for why in one.reasons() if one.method not in self.controls else ():
                reasons.setdefault(why, []).append(one.method)
        said += [f"cose of {', '.join(dict.fromkeys(methods))}: {why}" for why, methods in reasons.items()]
        said += sanity.reasons([curve for curve in self.curves if curve.method not in self.controls])
        said += [f"the model: {text}" for text in self.run.manifest["model"].get("warnings", [])]
        return said

    def _undefined(self) -> list[str]:
        """Which metrics have no value for some images, and why: those of one method and reason together."""
        empty = self.rows.filter(pc.is_nan(self.rows["value"]))
        cells = zip(*(empty[name].to_pylist() for name in ("metric", "definition", "method", "note")), strict=True)
        whys: dict[tuple[str, ...], dict[str, None]] = {}
        for *cell, note in cells:
            whys.setdefault(tuple(cell), {})[note] = None
        groups: dict[tuple[str, int, int, str], dict[str, None]] = {}
        for column in self.columns:
            if "." in column.metric or judgement.kind_of(column.metric) == judgement.RANDOMISATION:
                continue
            for method in column.methods:
                if (count := column.undefined(method)) and method not in self.controls:
                    notes = filter(None, whys.get((column.metric, column.definition, method), {}))
                    why = ", or ".join(list(notes)[:REASONS])
                    groups.setdefault((method, count, len(column.images), why), {})[column.metric] = None
        return [
            f"{judgement.listed(list(metrics))} of {method} {'is' if len(metrics) == 1 else 'are'} undefined for "
            f"{count} of {images} images{f' ({why})' if why else ''}"
            for (method, count, images, why), metrics in groups.items()
        ]

    def costs(self, by: str = "metric") -> dict[str, dict[str, float]]:
        """metric -> seconds, passes, passes saved, over all methods and images; 'maps' for the explanations.

        Or by `method`: what its maps and all metrics of them took.
        """
        found: dict[str, dict[str, float]] = {}
        rows = self.rows.filter(pc.starts_with(self.rows["metric"].cast(pa.string()), "cost."))
        columns = (rows[name].to_pylist() for name in ("metric", "definition", "method", "value"))
        for metric, definition, method, value in zip(*columns, strict=True):
            what = method if by == "method" else definition.split(" ")[0]
            kind = found.setdefault(what, {"seconds": 0.0, "passes": 0.0, "passes_shared": 0.0})
            kind[metric.removeprefix("cost.")] += value
        return found

    def as_dict(self) -> dict[str, Any]:
        """For machines; undefined numbers are None."""

        def plain(value: float) -> float | None:
            return None if np.isnan(value) else float(value)

        table = []
        for column in self.columns:
            ranks = column.ranks([m for m in self.methods if m in column.methods])
            for method in column.methods:
                found = column.estimate(method)
                table.append(
                    {
                        "metric": column.metric, "definition": column.definition, "method": method,
                        "control": method in self.controls, "value": plain(found.value), "low": plain(found.low),
                        "high": plain(found.high), "undefined": column.undefined(method), "rank": ranks.get(method),
                        "better": column.better,
                    }
                )  # fmt: skip
        return {
            "run": str(self.run.folder), "verdict": self.verdict(), "methods": self.methods, "table": table,
            "cose": [one.as_dict() for one in self.coses], "mprt": [one.as_dict() for one in self.curves],
            "costs": self.costs(), "failed": self.failed, "left_out": self.left_out, "warnings": self.problems(),
        }  # fmt: skip

    def __repr__(self) -> str:
        return "\n".join([f"Audit in {self.run.folder}", *self.verdict()])
