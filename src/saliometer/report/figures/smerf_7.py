"""Success and failure of every method in every setting (Figure 7 of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._panels import NAMES, NARROW, methods_down, names
from saliometer.report.view import View
from saliometer.report.words import question
from saliometer.summary import Verdict

ROW, TOPS = 32, {False: 34, True: 84}  # settings stand upright on a phone
NOTE = (
    "Only buckets that show both kinds of object count. 4/6 means: in 4 of 6 such buckets more than half of the "
    "attribution lies on the objects that decide (mean PAFL above 50), a success. A cross means: in more than half of "
    "them the objects that play no part get more (SAFL above PAFL), a failure. The questions that the models answer: "
)


@figure("Success and failure", of="bench", order=50, paper="SMERF Figure 7")
def smerf_7(view: View) -> Drawing | None:
    """Methods by settings; an empty cell where a method lacks a bucket."""
    settings = [s for s in view.settings if any(s in found for found in view.verdicts.values())]
    if not settings:
        return None
    found = {
        (place, row): view.verdicts[method][setting]
        for row, method in enumerate(view.methods)
        for place, setting in enumerate(settings)
        if setting in view.verdicts.get(method, {})
    }
    rows = [_told(view.methods[row], settings[place], verdict) for (place, row), verdict in found.items()]
    height = TOPS[True] + 8 + ROW * len(view.methods)
    told = f"Buckets in which a method succeeds, {len(view.methods)} methods by {len(settings)} settings"
    asked = "; ".join(f"{s}: {question(s, view.run)}" for s in settings)
    return Drawing(f"{NOTE}{asked}", [Chart(_option(view, settings, found), rows, told, height)])


def _told(method: str, setting: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "method": method, "setting": setting, "value": verdict.succeeded / verdict.buckets, **vars(verdict),
        "fails": _fails(verdict),
    }  # fmt: skip


def _fails(verdict: Verdict) -> bool:
    return verdict.failed * 2 > verdict.buckets


def _cell(place: int, row: int, verdict: Verdict, name: str) -> dict[str, Any]:
    said = f"{verdict.succeeded}/{verdict.buckets}"
    told = f"{name}: success in {verdict.succeeded}, failure in {verdict.failed} of {verdict.buckets} buckets"
    cross = {"formatter": f"{said}\n✕", "color": "@fail", "fontWeight": 700} if _fails(verdict) else {"formatter": said}
    return {"name": told, "value": [place, row, round(verdict.succeeded / verdict.buckets, 4)], "label": cross}


def _option(view: View, settings: list[str], found: dict[tuple[int, int], Verdict]) -> dict[str, Any]:
    def room(narrow: bool) -> dict[str, Any]:
        return {
            "grid": {"left": NAMES[narrow], "right": 8, "top": TOPS[narrow], "bottom": 8},
            "xAxis": {"axisLabel": {"rotate": 90 if narrow else 0, "interval": 0, "hideOverlap": False}},
            "yAxis": names(narrow=narrow),
        }

    wide = room(narrow=False)
    return {
        "tooltip": {"formatter": "{b}"},
        "grid": wide["grid"],
        "xAxis": {"type": "category", "position": "top", "data": settings, **wide["xAxis"]},
        "yAxis": methods_down(view) | wide["yAxis"],
        "visualMap": {
            "show": False, "min": 0, "max": 1.8, "dimension": 2,  # text is readable on the lower half
            "inRange": {"color": ["@card", "@primary"]},
        },
        "series": [
            {
                "type": "heatmap",
                "name": "success",
                "label": {"show": True, "color": "@ink", "fontSize": 11, "lineHeight": 12},
                "itemStyle": {"borderColor": "@rule", "borderWidth": 1},
                "data": [
                    _cell(place, row, verdict, f"{view.methods[row]}, {settings[place]}")
                    for (place, row), verdict in found.items()
                ],
            }
        ],
        "media": [{"query": {"maxWidth": NARROW}, "option": room(narrow=True)}, {"option": room(narrow=False)}],
    }  # fmt: skip
