"""What the SMERF figures draw: values of parts of the buckets, method by method, beside those of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saliometer.engine.run import Run
from saliometer.report.figures import Chart
from saliometer.report.view import View
from saliometer.report.words import kind, of_another_task
from saliometer.studies._smerf_paper import NAN, SHORT, stored
from saliometer.summary import Estimate, Scores

JOINS: dict[str, Any] = {"mean": np.mean, "min": np.min}
LONGEST = 38  # letters of a name
SPREAD = "whiskers are the standard deviation over buckets, as in the paper"


@dataclass(frozen=True)
class Part:
    """Some buckets of a group of settings, or all; named as in the file of the paper's values."""

    name: str
    group: str
    buckets: tuple[int, ...] = ()

    def places(self, scores: Scores) -> list[int]:
        return [i for i in scores.of(self.group) if not self.buckets or int(scores.cells[i][1]) in self.buckets]


SIMPLE, COMPLEX = Part("simple", "simple"), Part("complex", "complex")


@dataclass(frozen=True)
class Value:
    """A method's number, the ends of its whisker, and the paper's; NaN where there is none."""

    method: str
    value: float
    low: float = NAN
    high: float = NAN
    paper: float = NAN


@dataclass(frozen=True)
class Series:
    """Values of all methods, and how they are drawn."""

    name: str  # in the legend
    metric: str
    group: str
    join: str
    values: Sequence[Value]  # one for each method of the view
    colour: str = "@primary"
    look: str = "dot"  # or 'bar', 'ring', or a digit
    shift: int = 0  # pixels below the middle of the row
    ceiling: float = NAN
    condition: str = "black"
    diamond: str = "@ink"  # the colour of the paper's values

    @property
    def empty(self) -> bool:
        return all(np.isnan(one.value) for one in self.values)

    def rows(self) -> list[dict[str, Any]]:
        told = {"condition": self.condition, "metric": self.metric, "group": self.group, "join": self.join}
        found = [one for one in self.values if not (np.isnan(one.value) and np.isnan(one.paper))]
        return [{"method": one.method, **told, **{key: vars(one)[key] for key in ENDS}} for one in found]


ENDS = ("value", "low", "high", "paper")


def series(
    view: View, scores: Scores, part: Part, name: str, *, join: str = "mean", methods: Sequence[str] = (), **look: Any
) -> Series:
    """With whiskers of one standard deviation over buckets for bars, of the 95 % interval for others.

    `methods` are the rows of the chart, where another view's stand there.
    """
    places, spread, which = part.places(scores), look.get("look") == "bar", condition(view.run)
    values = [
        replace(
            _value(scores, method, places, join, spread), paper=stored(scores.metric, part.name, join, method, which)
        )
        if places and method in scores.methods
        else Value(method, NAN)
        for method in methods or view.methods
    ]
    oracle = [one.value for one in values if kind(one.method) == "oracle"]
    ceiling = oracle[0] if oracle and scores.metric not in ("safl", "siou") else NAN
    return Series(name, scores.metric, part.name, join, values, ceiling=ceiling, condition=which, **look)


def _value(scores: Scores, method: str, places: list[int], join: str, spread: bool) -> Value:
    found = scores.estimate(method, places, JOINS[join])
    if spread:
        deviation = float(scores.means[places, scores.methods.index(method)].std()) if len(places) > 1 else NAN
        found = Estimate(found.value, found.value - deviation, found.value + deviation)
    return Value(method, found.value, found.low, found.high)


def condition(run: Run) -> str:
    """Which models a run explains, as SMERF's study calls its parts; '' for others, of which the paper says nothing."""
    request = run.manifest["request"]
    background, network = kind(request.get("background", "black")), kind(request.get("arch", ""))
    unusual = [*{background} - {"black"}, *{network} - {""}, *["robust"] * bool(request.get("robust"))]
    if len(unusual) > 1 or of_another_task(run):
        return ""
    return unusual[0] if unusual else "black"


def label(method: str) -> str:
    """Its name, and the paper's where it runs with the paper's parameters; two lines on a phone."""
    name = f"{kind(method)} ({SHORT[method]})" if method in SHORT else method
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def about_paper(view: View, charts: Sequence[Chart]) -> str:
    """What to know of the diamonds, where there are any."""
    if not any(row["paper"] == row["paper"] for chart in charts for row in chart.rows):
        return ""
    here = (
        "as here" if view.definition == "authors" else f"so the values of {view.definition} are not expected to agree"
    )
    return (
        " Hollow diamonds are the paper's own values, read off the authors' stored figures, for methods that run with "
        f"the paper's parameters (its name for them in brackets). They belong to the definition authors, {here}."
    )
