"""How alike maps stay while layers are drawn anew, stage by stage (the curves of Adebayo et al., 2018)."""

import math
from collections.abc import Sequence
from typing import Any

from saliometer.engine.judged import Judged
from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._lines import INKS as EVERY
from saliometer.report.figures._lines import LINE, MORE, STROKES, SYMBOLS
from saliometer.report.figures._panels import NARROW, lines_of
from saliometer.sanity.summary import Curve

NOTE = (
    "Layers are drawn anew one after the other, and every image is explained again; the mean over images and draws, 1 "
    "where maps are the same. Neither end is good: noise (random) falls to 0 at once, edges never do, both explain "
    "nothing. A cascade that begins at the logits leaves early layers as they were, so some similarity must remain."
)
START = "none"
INKS = EVERY[:-1]  # the last is for controls
CONTROLS = {"random": 0, "edge": 1, "input": 2}  # those that tell something here, each with its stroke and symbol


@figure("While layers are drawn anew", of="audit", order=50)
def randomisation(judged: Judged) -> Drawing | None:
    by: dict[tuple[str, str], list[Curve]] = {}
    for curve in judged.curves:
        shown = curve.method not in judged.controls or curve.method in CONTROLS
        if shown and len(curve.layers) > 1 and not all(map(math.isnan, curve.means)):
            by.setdefault((curve.metric, curve.definition), []).append(curve)
    return Drawing(NOTE, [_chart(some, judged.controls) for some in by.values()]) if by else None


def _chart(curves: Sequence[Curve], controls: Sequence[str]) -> Chart:
    first = curves[0]
    begun = [] if first.order == "independent" else [START]
    stages = [*begun, *first.layers]
    title = f"{first.metric} {first.order}: {first.similarity}"
    tops = {
        narrow: 14 + LINE * lines_of([c.method for c in curves], 300 if narrow else 1000) for narrow in (False, True)
    }
    least = min(float(value) for curve in curves for value in curve.means if not math.isnan(value))
    option = {
        "tooltip": {"trigger": "item", "formatter": "{a}<br>{b}: {c}"},
        "legend": {"type": "plain", "top": 0, "itemWidth": 22, "itemHeight": 10, "data": [c.method for c in curves]},
        "grid": {"left": 46, "right": 22, "top": tops[False], "bottom": 96},
        "xAxis": {
            "type": "category", "data": stages, "axisLabel": {"rotate": 40, "hideOverlap": True}, "nameGap": 78,
            "name": "drawn anew alone" if not begun else "drawn anew up to", "nameLocation": "middle",
        },
        "yAxis": {
            "type": "value", "name": "similarity", "nameLocation": "middle", "nameGap": 32, "max": 1,
            "min": min(0.0, math.floor(5 * least) / 5),
        },
        "series": [_series(place, curve, curve.method in controls, begun) for place, curve in enumerate(curves)],
        "media": [
            {"query": {"maxWidth": NARROW}, "option": {"grid": {"top": tops[True]}}},
            {"option": {"grid": {"top": tops[False]}}},
        ],
    }  # fmt: skip
    rows = [
        {
            "metric": curve.metric, "method": curve.method, "definition": curve.definition, "stage": number,
            "layer": layer, "mean": float(mean), "spread_of_draws": float(spread),
        }
        for curve in curves
        for number, (layer, mean, spread) in enumerate(zip(curve.layers, curve.means, curve.spread, strict=True), 1)
    ]  # fmt: skip
    ends = "; ".join(f"{c.method} ends at {c.means[-1]:.2f}" for c in curves if not math.isnan(c.means[-1]))
    return Chart(option, rows, f"{title} over {len(first.layers)} stages: {ends}", MORE + 70 + tops[False], title)


def _series(place: int, curve: Curve, control: bool, begun: Sequence[str]) -> dict[str, Any]:
    """As many looks as there are inks, strokes and symbols."""
    kind = CONTROLS[curve.method] if control else place // len(INKS) % len(STROKES)
    style = {"color": "@control" if control else INKS[place % len(INKS)], "type": STROKES[kind], "width": 2}
    values = [*(1.0 for _ in begun), *curve.means.tolist()]
    return {
        "type": "line", "name": curve.method, "symbol": SYMBOLS[kind], "symbolSize": 6, "showAllSymbol": True,
        "lineStyle": style, "itemStyle": {"color": style["color"]}, "emphasis": {"focus": "series"},
        "data": [None if math.isnan(value) else round(value, 3) for value in values],
    }  # fmt: skip
