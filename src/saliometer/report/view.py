"""A run seen through one definition: scores, order of methods, controls and ceiling, computed once for all figures."""

import math
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from saliometer.engine.run import Run
from saliometer.report.words import kind
from saliometer.summary import RESAMPLES, Scores, Standing, Verdict, standings, verdicts

FEWER = 2_000  # resamples of metrics that no rank rests on
FLOORS = ("random", "edge")  # controls that an explanation should beat


@dataclass(frozen=True, eq=False)
class View:
    """What a figure sees."""

    run: Run
    rows: pa.Table
    definition: str
    resamples: int = RESAMPLES

    @cached_property
    def primary(self) -> Scores:
        return self.scores("pafl")

    @cached_property
    def secondary(self) -> Scores:
        return self.scores("safl")

    def scores(self, metric: str) -> Scores:
        """Made once: several figures draw the same metric."""
        if metric not in self._made:
            resamples = self.resamples if metric in ("pafl", "safl") else min(self.resamples, FEWER)
            self._made[metric] = Scores(self.rows, metric, self.definition, resamples)
        return self._made[metric]

    @cached_property
    def _made(self) -> dict[str, Scores]:
        return {}

    @cached_property
    def controls(self) -> list[str]:
        return [name for name, facts in self.run.manifest["methods"].items() if facts["control"]]

    @cached_property
    def standings(self) -> list[Standing]:
        """Best first; none where no image shows an object that decides."""
        return standings(self.primary, self.controls) if self.primary.cells else []

    @cached_property
    def single(self) -> bool:
        """Whether a bucket has no second image: then there are no intervals, and ranks follow the bare means."""
        return any(len(images) < 2 for images in self.primary.values.values())

    @cached_property
    def methods(self) -> list[str]:
        """Those with rows, best first."""
        return [standing.method for standing in self.standings] or self.primary.methods

    @cached_property
    def lost(self) -> list[str]:
        """Methods of the run without a single row."""
        return [name for name in self.run.manifest["methods"] if name not in self.primary.methods]

    @cached_property
    def settings(self) -> list[str]:
        """Those with rows, in the order they were asked for."""
        there = set(self.rows["setting"].unique().to_pylist())
        return [setting for setting in self.run.manifest["request"]["settings"] if setting in there]

    @cached_property
    def verdicts(self) -> dict[str, dict[str, Verdict]]:
        """Only where a method has a value in every bucket that counts."""
        return {
            method: {s: v for s, v in by_setting.items() if self._whole(method, s)}
            for method, by_setting in verdicts(self.primary, self.secondary).items()
        }

    def _whole(self, method: str, setting: str) -> bool:
        place = self.primary.methods.index(method)
        cells = [i for i in self.primary.of(setting) if self.primary.cells[i] in self.secondary.values]
        return not any(math.isnan(value) for value in self.primary.means[cells, place])

    def own(self, method: str) -> bool:
        """Whether it is the user's."""
        return bool(self.run.manifest["methods"][method]["own"])

    def role(self, method: str) -> str:
        """'ceiling', 'control', 'own' or '' for a method of ours."""
        if method in self.controls:
            return "ceiling" if kind(method) == "oracle" else "control"
        return "own" if self.own(method) else ""

    def ceiling(self, group: str = "all") -> float:
        """The oracle's mean PAFL; NaN where it did not run."""
        for method in self.primary.methods:
            if self.role(method) == "ceiling":
                return self.primary.estimate(method, self.primary.of(group)).value
        return math.nan

    def unbeaten(self) -> dict[str, list[str]]:
        """control -> ranked methods that are no better; each method under the weakest control it does not beat."""
        complete = {s.method: s.mean.value for s in self.standings if s.complete}
        floors = sorted((m for m in self.controls if kind(m) in FLOORS and m in complete), key=complete.__getitem__)
        found: dict[str, list[str]] = {}
        for standing in self.standings:
            for floor in floors if standing.rank else ():
                gap = self.primary.difference(standing.method, floor)
                if not (gap.value if math.isnan(gap.low) else gap.low) > 0:
                    found.setdefault(floor, []).append(standing.method)
                    break
        return found
