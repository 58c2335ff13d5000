"""Charts of scores from 0 to 100 against a number: a line for each name, the paper's values as hollow diamonds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from saliometer.report.figures import Chart
from saliometer.report.figures._panels import NARROW, PAPER, lines_of

INKS = ("@primary", "@fail", "@own", "@secondary", "@ink", "@control")
STROKES = ("solid", "dashed", "dotted")
SYMBOLS = ("circle", "rect", "triangle")
LINE, MORE = 20, 250  # pixels: a line of the legend, the chart itself


@dataclass(frozen=True)
class Line:
    name: str
    points: Mapping[float, float]  # where -> a share of 1
    paper: Mapping[float, float] = field(default_factory=dict)
    colour: str = ""  # one of INKS in turn, unless given


def chart(
    lines: Sequence[Line],
    across: str,
    up: str,
    told: str,
    *,
    title: str = "",
    lowest: int = 0,
    ends: Sequence[float] = (),
) -> Chart:
    """`across` and `up` name the axes; `up` starts at `lowest`, `across` takes in both `ends`."""
    entries = [*(line.name for line in lines), *[PAPER] * any(line.paper for line in lines)]
    tops = {narrow: 14 + LINE * lines_of(entries, 300 if narrow else 1000) for narrow in (False, True)}
    numbers = [*ends, *(x for line in lines for x in line.points)]
    whole = {"minInterval": 1} if all(float(x).is_integer() for x in numbers) else {}
    option = {
        "tooltip": {"trigger": "item", "formatter": "{a}: {c}"},
        "legend": {"type": "plain", "top": 0, "itemWidth": 22, "itemHeight": 10, "data": _legend(entries)},
        "grid": {"left": 46, "right": 22, "top": tops[False], "bottom": 44},
        "xAxis": {
            "type": "value", "name": across, "nameLocation": "middle", "nameGap": 26, "min": min(numbers),
            "max": max(numbers), "splitLine": {"show": False}, **whole,
        },
        "yAxis": {"type": "value", "name": up, "nameLocation": "middle", "nameGap": 32, "min": lowest, "max": 100},
        "series": [one for place, line in enumerate(lines) for one in _drawn(place, line)],
        "media": [
            {"query": {"maxWidth": NARROW}, "option": {"grid": {"top": tops[True]}}},
            {"option": {"grid": {"top": tops[False]}}},
        ],
    }  # fmt: skip
    nan = float("nan")
    rows = [
        {"name": line.name, "at": x, "value": line.points.get(x, nan), "paper": line.paper.get(x, nan)}
        for line in lines
        for x in sorted({*line.points, *line.paper})
    ]
    return Chart(option, rows, told, MORE + (tops[True] + tops[False]) // 2, title)


def _legend(entries: Sequence[str]) -> list[dict[str, Any]]:
    """Each with its stroke and symbol."""
    return [{"name": name, "icon": "diamond" if name == PAPER else "inherit"} for name in entries]


def _drawn(place: int, line: Line) -> list[dict[str, Any]]:
    """As many looks as there are inks, strokes and symbols."""
    ink, kind = line.colour or INKS[place % len(INKS)], place // len(INKS) % len(STROKES)
    found: list[dict[str, Any]] = [
        {
            "type": "line", "name": line.name, "symbol": SYMBOLS[kind], "symbolSize": 6, "showAllSymbol": True,
            "lineStyle": {"color": ink, "type": STROKES[kind], "width": 2}, "itemStyle": {"color": ink},
            "emphasis": {"focus": "series"}, "data": _points(line.points),
        }
    ]  # fmt: skip
    if line.paper:
        hollow = {"color": "transparent", "borderColor": "@ink", "borderWidth": 1.3}
        found.append(
            {
                "type": "scatter", "name": PAPER, "symbol": "diamond", "symbolSize": 11, "itemStyle": hollow, "z": 4,
                "data": _points(line.paper),
            }
        )  # fmt: skip
    return found


def _points(values: Mapping[float, float]) -> list[list[float]]:
    return [[x, round(100 * y, 1)] for x, y in sorted(values.items()) if y == y]
