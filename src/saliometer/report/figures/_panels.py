"""Charts with a row for each method: one panel, or two side by side, with bars, dots and diamonds from 0 to 100."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from saliometer.report.figures import Chart
from saliometer.report.figures._smerf import Series, Value, label
from saliometer.report.view import View

BOTTOM = 44  # room for the name of the axis
NARROW = 560  # a phone's width: less room for names
NAMES = {False: 215, True: 118}  # the room for names, wide and narrow
PAPER, HALF, CEILING = "the paper", "half", "ceiling (the oracle)"
DOTTED = "path://" + "".join(f"M{x},4h1.6v2h-1.6z" for x in (0, 4, 8, 12))  # as the lines are drawn
DASHED = "path://" + "".join(f"M{x},4h4v2h-4z" for x in (0, 5, 10))
ICONS = {"bar": "roundRect", PAPER: "diamond", HALF: DOTTED, CEILING: DASHED}
Option = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    name: str  # of its axis
    series: Sequence[Series]
    half: bool = False  # a line at 50


def chart(view: View, panels: Sequence[Panel], told: str, *, title: str = "", row: int = 24) -> Chart | None:
    """None where no method has a value; `told` says what is drawn."""
    kept = [Panel(panel.name, [one for one in panel.series if not one.empty], panel.half) for panel in panels]
    kept = [panel for panel in kept if panel.series]
    if not kept:
        return None
    drawn = [one for place, panel in enumerate(kept) for one in _drawn(view, panel, place)]
    looks = {one.name: one.look for panel in kept for one in panel.series}
    entries = list(dict.fromkeys([*looks, *(one["name"] for one in drawn)]))
    tops = {narrow: 12 + 20 * lines_of(entries, 330 if narrow else 1000) for narrow in NAMES}
    option = {
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}},
        "legend": {
            "type": "plain", "top": 0, "itemWidth": 14, "itemHeight": 10,
            "data": [{"name": name, "icon": ICONS.get(looks.get(name, name), "circle")} for name in entries],
        },
        **_axes(view, kept, tops[False]),
        "series": drawn,
        "media": [
            {"query": {"maxWidth": NARROW}, "option": _room(len(kept), tops[True], narrow=True)},
            {"option": _room(len(kept), tops[False], narrow=False)},
        ],
    }  # fmt: skip
    rows = [one for panel in kept for part in panel.series for one in part.rows()]
    height = (tops[True] + tops[False]) // 2 + BOTTOM + row * len(view.methods)
    return Chart(option, rows, f"{told}: {_best(view, kept[0])}", height, title)


def lines_of(entries: Sequence[str], width: int) -> int:
    """How many lines a legend takes, at about 6.5 pixels a letter."""
    lines, used = 1, 0.0
    for entry in entries:
        wide = 30 + 6.5 * len(entry)
        lines, used = (lines + 1, wide) if used and used + wide > width else (lines, used + wide)
    return lines


def _best(view: View, panel: Panel) -> str:
    """The leader's values, for those who cannot see the chart."""
    place, method = next(((i, m) for i, m in enumerate(view.methods) if m not in view.controls), (0, view.methods[0]))
    first = [(one.name, one.values[place].value) for one in panel.series]
    shown = ", ".join(f"{name} {100 * value:.1f}" for name, value in first if not math.isnan(value))
    return f"{len(view.methods)} methods; {method}, {panel.name}: {shown or 'no value'}"


def _axes(view: View, panels: Sequence[Panel], top: int) -> Option:
    across = {"type": "value", "min": 0, "max": 100, "interval": 25, "nameLocation": "middle", "nameGap": 26}
    ends = {"axisLabel": {"alignMinLabel": "left", "alignMaxLabel": "right"}}
    return {
        **_room(len(panels), top, narrow=False),
        "xAxis": [{**across, **ends, "gridIndex": i, "name": panel.name} for i, panel in enumerate(panels)],
        "yAxis": [{**methods_down(view), "gridIndex": i, **names(show=i == 0)} for i in range(len(panels))],
    }


def methods_down(view: View) -> Option:
    """An axis of methods, best on top."""
    shown = [{"value": label(method), "textStyle": {"color": _ink(view, method)}} for method in view.methods]
    return {"type": "category", "inverse": True, "data": shown, "axisTick": {"show": False}}


def names(*, narrow: bool = False, show: bool = True) -> Option:
    """Cut where they are too long, on a phone broken over lines."""
    fit = {"overflow": "break", "fontSize": 10} if narrow else {"overflow": "truncate", "fontSize": 12}
    width = {"width": NAMES[narrow] - 10, "lineHeight": 11}
    return {"axisLabel": {"show": show, "interval": 0, "hideOverlap": False, **width, **fit}}


def _room(panels: int, top: int, *, narrow: bool) -> Option:
    """What differs between a page and a phone; only the first panel has names."""
    left, edge = NAMES[narrow], {"top": top, "bottom": BOTTOM}
    split = ("35%", "68%") if narrow else ("41%", "62%")
    grids: list[Option] = [{**edge, "left": left, "right": 18}]
    if panels == 2:
        grids = [{**edge, "left": left, "right": split[0]}, {**edge, "left": split[1], "right": 18}]
    return {
        "grid": grids,
        "xAxis": [{"interval": 50 if narrow else 25} for _ in grids],
        "yAxis": [names(narrow=narrow, show=i == 0) for i in range(panels)],
    }


def _ink(view: View, method: str) -> str:
    return {"control": "@soft", "ceiling": "@soft", "own": "@own"}.get(view.role(method), "@ink")


def _drawn(view: View, panel: Panel, place: int) -> Iterator[Option]:
    on = {"xAxisIndex": place, "yAxisIndex": place}
    for one in panel.series:
        yield {**_marks(view, one), **on}
        if one.look == "bar":
            yield {**_whiskers(one), **on}
    for one in panel.series:
        if any(not math.isnan(value.paper) for value in one.values):
            yield {**_diamonds(one), **on}
    known = [round(100 * one.ceiling, 1) for one in panel.series if not math.isnan(one.ceiling)]
    ceilings = list({round(value): value for value in known}.values())  # one line where two would touch
    for name, lines, stroke in ((HALF, [50.0] if panel.half else [], "dotted"), (CEILING, ceilings, "dashed")):
        if lines:
            yield {**_lines(name, lines, stroke), **on}


def _marks(view: View, one: Series) -> Option:
    paper = any(not math.isnan(value.paper) for value in one.values)
    items = [{"value": _item(value, i), **_colour(view, value, one.look)} for i, value in _known(one)]
    found: Option = {
        "type": "bar" if one.look == "bar" else "scatter",
        "name": one.name,
        "dimensions": ["ours", "row", PAPER],
        "encode": {"x": 0, "y": 1, "tooltip": [0, 2] if paper else [0]},
        "itemStyle": _style(one.look, one.colour),
        "data": items,
    }
    if one.look == "bar":
        return found | {"barWidth": "62%", "itemStyle": {**found["itemStyle"], "opacity": 0.7}}
    size = 14 if one.look.isdigit() else 9
    inside = {"show": True, "formatter": one.look, "color": "@card", "fontSize": 9, "fontWeight": 600}
    return found | {"symbolSize": size, "symbolOffset": [0, one.shift]} | ({"label": inside} if size == 14 else {})


def _item(value: Value, place: int) -> list[float | None]:
    return [round(100 * value.value, 1), place, None if math.isnan(value.paper) else round(100 * value.paper, 1)]


def _known(one: Series) -> list[tuple[int, Value]]:
    return [(place, value) for place, value in enumerate(one.values) if not math.isnan(value.value)]


def _style(look: str, colour: str) -> Option:
    return {"color": "@card", "borderColor": colour, "borderWidth": 2} if look == "ring" else {"color": colour}


def _colour(view: View, value: Value, look: str) -> Option:
    control = view.role(value.method) in ("control", "ceiling")
    return {"itemStyle": _style(look, "@control")} if control else {}


def _whiskers(one: Series) -> Option:
    ends = [(i, value) for i, value in _known(one) if not math.isnan(value.low + value.high)]
    return {
        "type": "custom",
        "renderItem": "whisker",
        "name": one.name,
        "encode": {"x": [2, 3], "y": 0},
        "itemStyle": {"color": "@ink"},
        "tooltip": {"show": False},
        "z": 3,
        "data": [
            [i, *(round(100 * min(max(end, 0.0), 1.0), 1) for end in (value.value, value.low, value.high))]
            for i, value in ends
        ],
    }


def _diamonds(one: Series) -> Option:
    found = [(i, value.paper) for i, value in enumerate(one.values) if not math.isnan(value.paper)]
    return {
        "type": "scatter",
        "name": PAPER,
        "symbol": "diamond",
        "symbolSize": 10,
        "symbolOffset": [0, one.shift],
        "itemStyle": {"color": "transparent", "borderColor": one.diamond, "borderWidth": 1.3},
        "tooltip": {"show": False},
        "z": 4,
        "data": [[round(100 * value, 1), i] for i, value in found],
    }


def _lines(name: str, at: Sequence[float], stroke: str) -> Option:
    style = {"color": "@soft" if name == HALF else "@ink", "type": stroke, "width": 1.2, "opacity": 0.8}
    return {
        "type": "scatter",
        "name": name,
        "data": [],
        "itemStyle": {"color": style["color"]},
        "markLine": {
            "silent": True, "symbol": "none", "label": {"show": False}, "lineStyle": style,
            "data": [{"xAxis": value} for value in at],
        },
    }  # fmt: skip
