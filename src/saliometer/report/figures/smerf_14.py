"""Focus and overlap of the same toy map (Figure 14 of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._panels import PAPER
from saliometer.report.figures._pictures import map_png, outlines
from saliometer.report.figures._study import TOYS
from saliometer.report.templates import fill
from saliometer.studies._smerf_paper import NAN, paper
from saliometer.studies._smerf_study import Study
from saliometer.studies._smerf_toy import SIDE, A, B, toy_map, toy_scores

VALUE, BEHIND = 0.8, 0.001  # of B and of the background; A is 1
NOTE = (
    f"A toy map of {SIDE} × {SIDE} pixels: A decides and is 1, B plays no part and is {VALUE:g}, the rest is "
    f"{BEHIND:g}. Overlap calls the map perfect, for its highest pixels are those of A; focus sees that a quarter of "
    "the attribution lies on B. Computed here, with the metrics of this report; hollow diamonds are the paper's."
)
TEMPLATE = """
<div class="example" style="--outlines:url('{{ outlines }}')">
<figure><span class="map"><img src="{{ picture }}" alt="the toy map: A above on the left, B below on the right"></span>
<figcaption>the toy map<small><b class="on-primary">A decides</b>, <b class="on-secondary">B plays no part</b></small>
</figcaption></figure></div>
"""


@figure("Overlap calls perfect what focus does not", of="smerf", order=140, paper="SMERF Figure 14", group=TOYS)
def smerf_14(study: Study) -> Drawing | None:
    """Of every study: it needs no run."""
    rows: list[dict[str, Any]] = [
        {"metric": name, "value": value, "paper": stored(name, VALUE, BEHIND)}
        for name, value in toy_scores(VALUE, BEHIND).items()
    ]
    said = ", ".join(f"{row['metric'].upper()} {100 * row['value']:.1f}" for row in rows)
    chart = Chart(_option(rows), rows, f"Focus and overlap of the toy map: {said}", height=210)
    html = fill(TEMPLATE, picture=map_png(toy_map(VALUE, BEHIND)[0].numpy()), outlines=outlines((A, B), (1, 2)))
    return Drawing(NOTE, [chart], html)


def stored(metric: str, b: float, background: float) -> float:
    """The paper's value of its toy; NaN where it has none."""
    return paper("toy").get((metric, f"background {background:g}", f"B = {b:g}", ""), NAN)


def _option(rows: list[dict[str, Any]]) -> dict[str, Any]:
    inks = ["@primary" if row["metric"].startswith("p") else "@secondary" for row in rows]
    bars = [
        {"value": round(100 * row["value"], 1), "itemStyle": {"color": ink}}
        for row, ink in zip(rows, inks, strict=True)
    ]
    hollow = {"color": "transparent", "borderColor": "@ink", "borderWidth": 1.3}
    return {
        "tooltip": {"trigger": "item", "formatter": "{b}, {a}: {c}"},
        "grid": {"left": 60, "right": 22, "top": 30, "bottom": 30},
        "legend": {
            "type": "plain", "top": 0, "itemWidth": 14, "itemHeight": 10, "data": [{"name": PAPER, "icon": "diamond"}],
        },
        "xAxis": {"type": "value", "min": 0, "max": 100, "interval": 25},
        "yAxis": {"type": "category", "inverse": True, "data": [row["metric"].upper() for row in rows]},
        "series": [
            {"type": "bar", "name": "ours", "barWidth": "55%", "data": bars},
            {
                "type": "scatter", "name": PAPER, "symbol": "diamond", "symbolSize": 11, "itemStyle": hollow, "z": 4,
                "data": [[round(100 * row["paper"], 1), place] for place, row in enumerate(rows)],
            },
        ],
    }  # fmt: skip
