"""Distributions as violins: methods down the side, each with a few lanes and an empty one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

ROW = 18  # pixels of a lane


def violin(points: Sequence[float], lane: int) -> list[float]:
    """An outline for `renderItem: violin`: the lane, then places and half widths; [] of fewer than five points."""
    if len(points) < 5 or np.std(points) == 0:
        return []
    values = np.asarray(points, dtype=np.float64)
    width = 0.9 * min(values.std(), np.subtract(*np.percentile(values, [75, 25])) / 1.34 or values.std())
    width = (width or values.std()) * len(values) ** -0.2
    at = np.linspace(values.min() - 2 * width, values.max() + 2 * width, 40)
    density = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2).sum(1)
    half = 0.48 * density / density.max()
    return [float(lane), *(round(float(one), 3) for pair in zip(at, half, strict=True) for one in pair)]


def quartiles(points: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Lower end, first quartile, median, third, upper end: whiskers reach 1.5 times the box, to points."""
    low, middle, high = np.percentile(points, [25, 50, 75])
    reach = 1.5 * (high - low)
    inside = [one for one in points if low - reach <= one <= high + reach]
    return min(inside), float(low), float(middle), float(high), max(inside)


def shapes(name: str, ink: str, points: Mapping[int, Sequence[float]]) -> list[dict[str, Any]]:
    """Series of outlines and of lines from the first to the third quartile, by lane."""
    outlines = [violin(some, lane) for lane, some in points.items()]
    boxes = {lane: quartiles(some) for lane, some in points.items()}
    return [
        {
            "type": "custom", "renderItem": "violin", "name": name, "itemStyle": {"color": ink},
            "encode": {"x": 1, "y": 0}, "silent": True, "clip": True, "data": [one for one in outlines if one],
        },
        {
            "type": "custom", "renderItem": "whisker", "name": name, "itemStyle": {"color": ink},
            "encode": {"x": [2, 3], "y": 0}, "silent": True, "z": 3,
            "data": [[lane, box[2], box[1], box[3]] for lane, box in boxes.items()],
        },
    ]  # fmt: skip


def option(
    methods: Sequence[str],
    lanes: int,
    series: Sequence[dict[str, Any]],
    legend: Sequence[str | dict[str, str]],
    low: float = 0,
) -> dict[str, Any]:
    """The whole chart, in percent; `lanes` of a method with the empty one."""
    between = [{"yAxis": (place + 1) * lanes - 1} for place in range(len(methods) - 1)]
    names = [method if lane == 1 else "" for method in methods for lane in range(lanes)]
    return {
        "tooltip": {"trigger": "item", "formatter": "{a}: {c}"},
        "legend": {"top": 0, "data": list(legend)},
        "grid": {"left": 92, "right": 20, "top": 34, "bottom": 26},
        "xAxis": {"type": "value", "min": low, "max": 100, "interval": 10},
        "yAxis": {
            "type": "category", "data": names, "inverse": True, "axisTick": {"show": False},
            "axisLabel": {"interval": 0, "hideOverlap": False}, "splitLine": {"show": False},
        },
        "series": [*series, rules(between)],
    }  # fmt: skip


def height(methods: int, lanes: int) -> int:
    """Pixels of that chart."""
    return 60 + ROW * lanes * methods


def rules(lines: Sequence[dict[str, Any]], ink: str = "@rule", kind: str = "solid") -> dict[str, Any]:
    """A series of straight lines alone, each at a place of an axis."""
    return {
        "type": "scatter", "data": [], "silent": True,
        "markLine": {
            "silent": True, "symbol": "none", "label": {"show": False}, "data": lines,
            "lineStyle": {"color": ink, "type": kind, "width": 1},
        },
    }  # fmt: skip
