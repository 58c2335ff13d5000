"""Means and lowest buckets of several groups or conditions under each other, method by method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from saliometer.report.figures import Chart, Drawing
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import COMPLEX, SIMPLE, Part, Series, about_paper, series
from saliometer.report.view import View
from saliometer.studies._smerf_paper import NAN

JOINED = {"mean": "mean", "min": "lowest bucket"}
COLOURED = "Each has the colour and the height of its mark."
STEP = 7  # pixels between the marks of a row


@dataclass(frozen=True)
class Line:
    """One colour of marks: a metric over a part of a view's buckets."""

    name: str
    view: View
    metric: str
    part: Part
    colour: str


def marked(
    panels: Mapping[str, Sequence[Line]], note: str, label: str, joins: Sequence[str] = ("mean", "min")
) -> Drawing | None:
    """Dots for means, rings for the lowest bucket; rows are the methods of the first line's view."""
    first = next(iter(panels.values()))[0].view
    drawn = chart(first, [_panel(name, lines, first.methods, joins) for name, lines in panels.items()], label, row=36)
    return Drawing(note + _about(first, drawn), [drawn]) if drawn else None


def _about(view: View, drawn: Chart) -> str:
    """What to know of the diamonds; the definition where there are none."""
    said = about_paper(view, [drawn])
    return f"{said} {COLOURED}" if said else f" By the definition {view.definition}."


def _panel(name: str, lines: Sequence[Line], methods: Sequence[str], joins: Sequence[str]) -> Panel:
    marks = [(line, join) for join in joins for line in lines]
    middle = (len(marks) - 1) / 2
    found = [_series(line, join, methods, round(STEP * (place - middle))) for place, (line, join) in enumerate(marks)]
    return Panel(name, found, half=True)


def _series(line: Line, join: str, methods: Sequence[str], shift: int) -> Series:
    look, name = "dot" if join == "mean" else "ring", f"{line.name}, {JOINED[join]}"
    found = series(
        line.view, line.view.scores(line.metric), line.part, name, join=join, methods=methods, look=look,
        colour=line.colour, shift=shift,
    )  # fmt: skip
    return replace(found, ceiling=NAN, diamond=line.colour)  # the oracle has a row of its own


def groups(view: View, metric: str) -> list[Line]:
    """Simple and complex reasoning of one view."""
    return [Line("simple", view, metric, SIMPLE, "@primary"), Line("complex", view, metric, COMPLEX, "@fail")]


def conditions(views: dict[str, View], metric: str, part: Part) -> list[Line]:
    """One group of buckets under two conditions, the first of them the news."""
    colours = ("@own", "@primary")
    return [Line(name, view, metric, part, colour) for (name, view), colour in zip(views.items(), colours, strict=True)]
