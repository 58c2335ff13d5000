"""Whether the settings can be told from one method's maps alone (Figure 9 of Kim et al., 2022, as a number)."""

import math
from collections.abc import Mapping
from typing import Any

from saliometer.engine.run import opened
from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._panels import CEILING, DASHED, DOTTED, NAMES, NARROW, names
from saliometer.report.figures._smerf import label
from saliometer.report.words import kind
from saliometer.studies._smerf_study import IDENTIFY, Study
from saliometer.summary import Estimate, Scores, Uncertain

ROW, TOP, BOTTOM = 24, 34, 44
CHANCE, TOLD = "chance", "told right"
ICONS = {TOLD: "circle", CHANCE: DOTTED, CEILING: DASHED}
NOTE = (
    "The same images go through all seven models; a map is given to the setting whose mean shares on the objects and "
    "the background, over other images, are nearest. Percent told right, with 95 % intervals over images. The oracle "
    "shows what the objects that decide tell: settings in which the same ones do look alike to it. A method above it "
    "tells models apart by something else than their reasoning."
)

MODELS = " Means over {} trainings, the seven models of each told apart; their intervals over models are in the data."


@figure("Told apart by maps alone", of="smerf", order=100, paper="SMERF Figure 9 as a number")
def identifiability(study: Study) -> Drawing | None:
    scores = study.told
    if scores is None:
        return None
    run = opened(study.folder / IDENTIFY)
    controls = {name for name, facts in run.manifest["methods"].items() if facts["control"]}
    found = {method: scores.estimate(method, scores.of("all")) for method in scores.methods}
    found = dict(sorted(found.items(), key=lambda item: (-item[1].value, item[0])))
    chance = 1 / len(run.manifest["request"]["settings"])
    ceiling = next((one.value for method, one in found.items() if kind(method) == "oracle"), math.nan)
    several = study.told_over_models()
    rows = [_row(scores, method, one, chance, several) for method, one in found.items()]
    first = next(iter(found))
    told = f"How often maps tell the settings apart, {len(found)} methods: {first} {100 * found[first].value:.1f} %"
    count = max((one.count for one in several.values()), default=1)
    note = NOTE + (MODELS.format(count) if several else "")
    return Drawing(
        note, [Chart(_option(found, controls, chance, ceiling), rows, told, TOP + BOTTOM + ROW * len(found))]
    )


def _row(scores: Scores, method: str, one: Estimate, chance: float, several: Mapping[str, Uncertain]) -> dict[str, Any]:
    buckets = {
        f"bucket {bucket}": scores.estimate(method, [place]).value for place, (_, bucket) in enumerate(scores.cells)
    }
    ends = vars(several[method].models) if method in several else {}
    models = {f"{end} over models": ends[end] for end in ("low", "high") if ends}
    return {"method": method, **vars(one), **models, "chance": chance, **buckets}


def _option(found: dict[str, Estimate], controls: set[str], chance: float, ceiling: float) -> dict[str, Any]:
    def room(narrow: bool) -> dict[str, Any]:
        return {
            "grid": {"left": NAMES[narrow], "right": 18, "top": TOP, "bottom": BOTTOM},
            "yAxis": names(narrow=narrow),
        }

    wide = room(narrow=False)
    shown = [
        {"value": label(method), "textStyle": {"color": "@control" if method in controls else "@ink"}}
        for method in found
    ]
    ends = [(place, one) for place, one in enumerate(found.values()) if not math.isnan(one.low + one.high)]
    lines = {CHANCE: (chance, "dotted"), CEILING: (ceiling, "dashed")}
    across = {"type": "value", "min": 0, "max": 100, "nameLocation": "middle", "nameGap": 26}
    return {
        "tooltip": {"trigger": "item", "formatter": "{b}"},
        "legend": {
            "type": "plain", "top": 0, "itemWidth": 14, "itemHeight": 10,
            "data": [{"name": name, "icon": icon} for name, icon in ICONS.items()],
        },
        "grid": wide["grid"],
        "xAxis": {**across, "name": "percent told right"},
        "yAxis": {"type": "category", "inverse": True, "data": shown, "axisTick": {"show": False}} | wide["yAxis"],
        "series": [
            {
                "type": "scatter", "name": TOLD, "symbolSize": 9, "itemStyle": {"color": "@primary"}, "z": 4,
                "data": [_dot(place, method, one, controls) for place, (method, one) in enumerate(found.items())],
            },
            {
                "type": "custom", "renderItem": "whisker", "name": TOLD, "encode": {"x": [2, 3], "y": 0},
                "itemStyle": {"color": "@ink"}, "tooltip": {"show": False}, "z": 3,
                "data": [[place, *(round(100 * v, 1) for v in (one.value, one.low, one.high))] for place, one in ends],
            },
            *(_line(name, value, stroke) for name, (value, stroke) in lines.items() if not math.isnan(value)),
        ],
        "media": [{"query": {"maxWidth": NARROW}, "option": room(narrow=True)}, {"option": room(narrow=False)}],
    }  # fmt: skip


def _dot(place: int, method: str, one: Estimate, controls: set[str]) -> dict[str, Any]:
    interval = "" if math.isnan(one.low) else f" [{100 * one.low:.1f}, {100 * one.high:.1f}]"
    style = {"itemStyle": {"color": "@control"}} if method in controls else {}
    return {
        "value": [round(100 * one.value, 1), place],
        "name": f"{method}: {100 * one.value:.1f} %{interval}",
        **style,
    }


def _line(name: str, value: float, stroke: str) -> dict[str, Any]:
    style = {"color": "@soft" if name == CHANCE else "@ink", "type": stroke, "width": 1.2}
    return {
        "type": "scatter", "name": name, "data": [], "itemStyle": {"color": style["color"]},
        "markLine": {
            "silent": True, "symbol": "none", "label": {"show": False}, "lineStyle": style,
            "data": [{"xAxis": round(100 * value, 1)}],
        },
    }  # fmt: skip
