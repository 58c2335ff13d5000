"""What SMERF's claims look at: bucket means by the paper's names, and the small findings that claims are made of."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.engine.presets import SMERF
from saliometer.studies._claims import Claim, Finding, MissingError
from saliometer.studies._smerf_paper import spec_of
from saliometer.summary import Scores
from saliometer.tasks.textbox import BUCKETS, SETTINGS, reasonings

CONTROLS = ["Random", "Edge"]
REAL = [name for name in SMERF if name not in CONTROLS]  # the 15 methods
FIGURE_2 = ["G", "SG", "DCN", "GBP", "DT", "IG", "LRP-eps", "DL-RC", "G-CAM", "D-SHAP"]
STRONG = ["I*G", "IG", "LRP-z", "LRP-eps", "LRP-A-beta", "DL-RC", "DL-R"]
WEAK = ["G", "SG", "DCN", "GBP"]
COMPLEX = [setting for setting in SETTINGS if setting.startswith("complex")]
NOISE = 0.1  # a mean PAFL up to this is not above noise
NEEDS = {"safl": "S", "siou": "PS", "smafl": "S"}  # primary or secondary objects; all others want primary ones


class Table:
    """Bucket means by the paper's names, in one definition."""

    def __init__(self, rows: pa.Table, definition: str) -> None:
        self.definition, self.scores = definition, _Scores(rows, definition)
        self._methods = set(rows["method"].unique().to_pylist())

    def spec(self, name: str) -> str:
        """What the run calls a method of the paper."""
        return spec_of(name, self._methods)

    def lacking(self, names: Iterable[str]) -> list[str]:
        return [self.spec(name) for name in names if self.spec(name) not in self.scores["pafl"].methods]

    def fewer(self, names: Iterable[str]) -> str:
        """What to say where one of them runs with other parameters than the paper's."""
        changed = [name for name in names if self.spec(name) != SMERF[name]]
        return "; ".join(f"{name} is {self.spec(name)}, the paper's {SMERF[name]}" for name in changed)

    def remarks(self, parts: Iterable[str]) -> str:
        """What to say of the models of these conditions."""
        return ""

    def buckets(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> dict[tuple[str, int], float]:
        """(setting, bucket) -> mean, of a group of settings or one, of some buckets or all."""
        scores, chosen, spec = self.scores[metric], set(only), self.spec(method)
        if spec not in scores.methods:
            raise MissingError(f"the run has no {metric.upper()} of {spec}")
        place = scores.methods.index(spec)
        settings = [setting for setting in SETTINGS if group == "all" or setting.startswith(group)]
        if missing := [setting for setting in settings if not scores.of(setting)]:
            raise MissingError(f"the run lacks {', '.join(missing)}")
        return {
            (setting, bucket): self._value(scores, place, setting, bucket)
            for setting in settings
            for bucket in scored(metric, setting)
            if not chosen or bucket in chosen
        }

    def _value(self, scores: Scores, place: int, setting: str, bucket: int) -> float:
        cell = setting, str(bucket)
        value = float(scores.means[scores.cells.index(cell), place]) if cell in scores.values else float("nan")
        if np.isnan(value):
            raise MissingError(f"{scores.methods[place]} has no {scores.metric.upper()} in {setting}, bucket {bucket}")
        return value

    def mean(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> float:
        return float(np.mean(list(self.buckets(metric, method, group, only).values())))

    def least(self, metric: str, method: str, group: str) -> float:
        return min(self.buckets(metric, method, group).values())

    def both(self, method: str, setting: str) -> list[float]:
        """PAFL in the buckets that show a primary and a secondary object."""
        return [primary for primary, _ in self.sides(method, setting).values()]

    def sides(
        self, method: str, group: str, metrics: tuple[str, str] = ("pafl", "safl")
    ) -> dict[tuple[str, int], tuple[float, float]]:
        """What primary and secondary objects get, in the buckets that show both."""
        primary, secondary = (self.buckets(metric, method, group) for metric in metrics)
        return {cell: (value, secondary[cell]) for cell, value in primary.items() if cell in secondary}

    def drop(self, metric: str, methods: Iterable[str]) -> dict[str, tuple[float, float]]:
        """Means on simple and on complex reasoning."""
        return {m: (self.mean(metric, m, "simple"), self.mean(metric, m, "complex")) for m in methods}

    def lowest(self, metric: str, methods: Iterable[str]) -> dict[str, tuple[float, float]]:
        """The lowest bucket on simple and on complex reasoning."""
        return {m: (self.least(metric, m, "simple"), self.least(metric, m, "complex")) for m in methods}

    def above_noise(self) -> list[str]:
        return [m for m in REAL if self.mean("pafl", m, "simple") > NOISE]


class _Scores(dict[str, Scores]):
    """By metric, each made when it is looked at."""

    def __init__(self, rows: pa.Table, definition: str) -> None:
        super().__init__()
        self._rows, self._definition = rows, definition

    def __missing__(self, metric: str) -> Scores:
        return self.setdefault(metric, Scores(self._rows, metric, self._definition))


def scored(metric: str, setting: str) -> list[int]:
    """Buckets with the objects that a metric looks at: those that decide, for SAFL those that play no part."""
    found = []
    for number, said in reasonings(setting).items():
        shown = {place for place, there in enumerate(BUCKETS[number].present) if there}
        there = {"P": said.primary, "S": shown - said.primary - said.neither}
        if all(there[kind] for kind in NEEDS.get(metric, "P")):
            found.append(number)
    return found


@dataclass(frozen=True)
class Smerf(Claim[Any]):
    """A claim over a `Table`, or over one that knows the whole study."""

    status: str = ""  # how the authors' own stored numbers stand
    methods: Sequence[str] = ()  # those it is about
    scores: bool = True  # whether it hangs on how maps are scored
    parts: Sequence[str] = ()  # conditions beside black that it looks at

    def under(self, table: Table) -> dict[str, Any]:
        if missing := table.lacking(self.methods):
            return {"ours": "", "holds": None, "why": f"the run lacks {', '.join(missing)}"}
        found = self.judged(table)
        if found["holds"] is not None:
            said = found["why"], table.remarks(self.parts), table.fewer(self.methods)
            found["why"] = "; ".join(filter(None, said))
        return found


def pairs(found: Mapping[str, tuple[float, float]], right: Callable[[float, float], bool], wanted: int = 0) -> Finding:
    """Whether all (or `wanted`) methods go the way the claim says, and which do not."""
    wrong = {name: pair for name, pair in found.items() if not right(*pair)}
    said = "; ".join(f"{name} {a:.2f} to {b:.2f}" for name, (a, b) in wrong.items())
    right_ones = len(found) - len(wrong)
    figures = f"{right_ones} of {len(found)}" + (f"; not {said}" if wrong else "")
    return Finding(figures, right_ones >= (wanted or len(found)))


def each(values: Mapping[str, float], right: Callable[[float], bool]) -> Finding:
    wrong = {name: value for name, value in values.items() if not right(value)}
    said = ", ".join(f"{name} {value:.2f}" for name, value in (wrong or values).items())
    return Finding(("not " if wrong else "") + said, not wrong)


def every(*findings: Finding) -> Finding:
    return Finding("; ".join(one.ours for one in findings), all(one.holds for one in findings))


def falls(one: float, other: float) -> bool:
    return other < one
