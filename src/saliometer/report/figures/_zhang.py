"""Charts of the ten-methods study: a panel for each metric, methods down the side, ours beside the paper's."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from saliometer.judgement import FLOORS
from saliometer.report.figures import Chart, Drawing

if TYPE_CHECKING:
    from saliometer.studies._zhang_tables import Value

MEANING = {
    "AI": "on how many images the class becomes more probable when the image is multiplied by the map, in percent",
    "AD_bar": "how much of the probability is left then, in percent",
    "AG": "how far it rises then, in percent of what was left to rise",
    "I": "the mean probability while pixels are put in, those that the map ranks highest first",
    "D_bar": "100 minus the mean probability while pixels are taken out in that order",
    "Monotonicity": "whether pixels that the map ranks higher matter more to the model, as a rank correlation",
    "MS": "the most that a map changes when the image is shaken a little, as a share of the map",
    "AS": "how much it changes then on average",
    "Sparseness": "how unevenly a map shares out what it gives: 0 if it is the same everywhere, 100 for one pixel",
    "Complexity": "the entropy of a map: the logarithm of the number of pixels if it is the same everywhere",
    "EC": "the number of pixels that a map marks at all",
}
LOWER = ("MS", "AS", "Complexity", "EC")  # is better
APART = ("I", "D_bar", "Complexity", "EC")  # whose axes need not start at 0
CONTROLS = (*FLOORS, "input", "fake_cam", "fresh_noise", "oracle")  # in grey, below the methods
HEAD, LEGEND, BETWEEN = 46, 34, 12  # pixels: over a panel, over all, under a panel
NARROW, PHONE = 560, 660  # pixels: charts up to this width, in windows up to that, have two panels in a row


class Lane(NamedTuple):
    """A condition, as a line of its own within a method's row."""

    name: str
    colour: str


def named(metric: str) -> str:
    return metric.replace("_", "-")


def unrun(metrics: Sequence[str], values: Sequence["Value"]) -> str:
    """A sentence on the metrics that are not there, or nothing."""
    there = {value.metric for value in values}
    lost = [named(metric) for metric in metrics if metric not in there]
    return f" Not run: {', '.join(lost)}." if lost else ""


def drawing(name: str, note: str, charts: Sequence[Chart], metrics: Sequence[str] = ()) -> Drawing:
    """With what the metrics mean below, and charts that are taller on a phone, where panels stand two in a row."""
    heights = [_height(chart.option["media"][0]["option"]["grid"]) for chart in charts]
    tall = "".join(
        f'[data-chart="{name}-{place}"] {{ height: {height}px !important; }} ' for place, height in enumerate(heights)
    )
    html = Markup(f"<style>@media (max-width: {PHONE}px) {{ {tall}}}</style>")
    if metrics:
        items = Markup("").join(Markup("<li><b>{}</b>: {}.</li>").format(named(m), MEANING[m]) for m in metrics)
        html += Markup("<details><summary>What the metrics are</summary><ul>{}</ul></details>").format(items)
    return Drawing(note, charts, html)


def chart(
    values: Sequence["Value"],
    methods: Sequence[str],
    lanes: Mapping[str, Lane],
    *,
    label: str,
    title: str = "",
    across: int = 3,
    bounds: tuple[float, float] | None = None,
    edges: tuple[float, float] = (9.5, 25),
) -> Chart:
    """A panel for each metric, `across` in a row; `lanes` by condition, all axes within `bounds` where given.

    Controls that are not among `methods` stand below them, in grey. `edges` are the room for names at the side, in
    percent, on a page and on a phone.
    """
    grey = {value.method for value in values if value.method in CONTROLS and value.method not in methods}
    shown = [*methods, *(control for control in CONTROLS if control in grey)]
    metrics = list(dict.fromkeys(value.metric for value in values))
    side, legend = _Side(shown, list(lanes)), _legend(values, lanes, grey)
    wide = _layout(len(metrics), across, side.height, bool(legend), (edges[0], 12))
    narrow = _layout(len(metrics), min(2, len(metrics)), side.height, bool(legend), (edges[1], 11))
    option: dict[str, Any] = {
        "legend": {"top": 0, "left": "center", "data": legend, "itemWidth": 14, "itemGap": 12},
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        **wide,
        "xAxis": [_scale(metric, place, bounds) for place, metric in enumerate(metrics)],
        "yAxis": [side.axis(place) | wide["yAxis"][place] for place in range(len(metrics))],
        "series": [
            one
            for place, metric in enumerate(metrics)
            for one in _series([v for v in values if v.metric == metric], place, side, lanes, grey, bounds)
        ],
        "media": [{"query": {"maxWidth": NARROW}, "option": narrow}, {"option": wide}],
    }
    return Chart(option, [asdict(value) for value in values], label, _height(wide["grid"]), title)


def _layout(
    count: int, across: int, height: int, legend: bool, names: tuple[float, int]
) -> dict[str, list[dict[str, Any]]]:
    """Where panels stand, in percent of the width and in pixels, and which of them have names at their side."""
    edge, font = names
    gap, right, top = 3.5, 1.5, HEAD + LEGEND * legend
    pitch = (100 - edge - right + gap) / across
    grids = [
        {
            "left": f"{edge + place % across * pitch:.2f}%", "width": f"{pitch - gap:.2f}%", "height": height,
            "top": top + place // across * (height + BETWEEN + HEAD), "outerBoundsMode": "none",
        }
        for place in range(count)
    ]  # fmt: skip
    label = {"interval": 0, "hideOverlap": False, "fontSize": font}
    return {"grid": grids, "yAxis": [{"axisLabel": label | {"show": place % across == 0}} for place in range(count)]}


def _height(grids: Sequence[Mapping[str, Any]]) -> int:
    return int(grids[-1]["top"] + grids[-1]["height"] + BETWEEN)


class _Side:
    """The vertical axis: a line for each method, or an empty one and then one for each of its lanes."""

    def __init__(self, methods: Sequence[str], lanes: Sequence[str]) -> None:
        self.methods, self.lanes = list(methods), list(lanes)
        self.lines = len(lanes) + 1 if len(lanes) > 1 else 1
        self.height = len(methods) * (10 * self.lines if self.lines > 1 else 20)

    def at(self, value: "Value") -> int:
        lane = self.lanes.index(value.condition) + 1 if self.lines > 1 else 0
        return self.methods.index(value.method) * self.lines + lane

    def rules(self) -> list[dict[str, int]]:
        """The empty lines, to be drawn between methods."""
        return [{"yAxis": place * self.lines} for place in range(len(self.methods))] if self.lines > 1 else []

    def axis(self, place: int) -> dict[str, Any]:
        names = [name if line == self.lines // 2 else "" for name in self.methods for line in range(self.lines)]
        return {
            "type": "category", "data": names, "inverse": True, "gridIndex": place, "axisTick": {"show": False},
            "splitLine": {"show": self.lines == 1},
        }  # fmt: skip


def _scale(metric: str, place: int, bounds: tuple[float, float] | None) -> dict[str, Any]:
    better = "" if bounds else " ↓" if metric in LOWER else " ↑"
    limits = {"min": bounds[0], "max": bounds[1]} if bounds else {"scale": metric in APART}
    return {
        "type": "value", "position": "top", "gridIndex": place, "name": named(metric) + better, **limits,
        "nameLocation": "middle", "nameGap": 24, "splitNumber": 2,
        "axisLabel": {"fontSize": 11, "alignMinLabel": "left", "alignMaxLabel": "right", "hideOverlap": True},
        "nameTextStyle": {"fontWeight": 600, "color": "@ink", "fontSize": 12},
    }  # fmt: skip


def _legend(values: Sequence["Value"], lanes: Mapping[str, Lane], grey: Collection[str]) -> list[dict[str, Any]]:
    there = {value.condition for value in values}
    names = [{"name": lane.name, "icon": "circle"} for condition, lane in lanes.items() if condition in there]
    names += [{"name": "paper", "icon": "diamond"}] if any(value.paper is not None for value in values) else []
    names += [{"name": "control", "icon": "circle"}] if grey else []
    return names if len(names) > 1 else []


def _series(
    values: Sequence["Value"], place: int, side: _Side, lanes: Mapping[str, Lane], grey: Collection[str],
    bounds: tuple[float, float] | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Of one panel: dots and intervals of every lane and of the controls, then the paper's diamonds."""
    axes = {"xAxisIndex": place, "yAxisIndex": place}
    groups = [
        (lane, [v for v in values if v.condition == condition and v.method not in grey])
        for condition, lane in lanes.items()
    ]
    groups.append((Lane("control", "@control"), [v for v in values if v.method in grey]))
    found: list[dict[str, Any]] = []
    for lane, some in groups:
        if some:
            found += [_dots(lane, some, side, axes), _whiskers(lane, some, side, axes)]
    printed = [_item(v, [v.paper, side.at(v)]) for v in values if v.paper is not None]
    if printed:
        hollow = {"color": "@card", "borderColor": "@ink", "borderWidth": 1.4, "opacity": 0.9}
        found.append(
            {"type": "scatter", "name": "paper", "symbol": "diamond", "symbolSize": 9, "itemStyle": hollow, "z": 3}
            | axes
            | {"data": printed}
        )
    rules: list[dict[str, Any]] = list(side.rules())
    if bounds and bounds[0] < 0 < bounds[1]:
        rules.append({"xAxis": 0, "lineStyle": {"color": "@soft"}})
    if rules:
        found[0]["markLine"] = _lines("@rule", rules)
    return found


def _lines(colour: str, places: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    style = {"color": colour, "type": "solid", "width": 1}
    return {"silent": True, "symbol": "none", "label": {"show": False}, "lineStyle": style, "data": list(places)}


def _dots(lane: Lane, values: Sequence["Value"], side: _Side, axes: Mapping[str, int]) -> dict[str, Any]:
    return {
        "type": "scatter", "name": lane.name, "symbolSize": 8, "itemStyle": {"color": lane.colour, "opacity": 1},
        "z": 4, **axes, "data": [_item(value, [value.ours, side.at(value)]) for value in values],
    }  # fmt: skip


def _whiskers(lane: Lane, values: Sequence["Value"], side: _Side, axes: Mapping[str, int]) -> dict[str, Any]:
    return {
        "type": "custom", "renderItem": "whisker", "name": lane.name, "itemStyle": {"color": lane.colour}, "z": 2,
        "encode": {"x": [2, 3], "y": 0}, "silent": True, **axes,
        "data": [[side.at(value), value.ours, value.low, value.high] for value in values],
    }  # fmt: skip


def _item(value: "Value", at: list[Any]) -> dict[str, Any]:
    """A point, and what is said of it when pointed at."""
    paper = "" if value.paper is None else f"; paper {_number(value.paper)}"
    interval = f"[{_number(value.low)}, {_number(value.high)}]"
    return {"value": at, "name": f"{value.method}, {named(value.metric)}: {_number(value.ours)} {interval}{paper}"}


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
