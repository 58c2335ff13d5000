"""Success and failure of every method in every setting (Figure 7 of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._grid import Cell, Look, grid
from saliometer.report.view import View
from saliometer.report.words import question
from saliometer.summary import Verdict

ROW, LOOK = 32, Look(("@card", "@primary"))
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
    cells = [
        _cell(*place, verdict, f"{view.methods[place[1]]}, {settings[place[0]]}") for place, verdict in found.items()
    ]
    height = LOOK.narrow + 8 + ROW * len(view.methods)
    told = f"Buckets in which a method succeeds, {len(view.methods)} methods by {len(settings)} settings"
    asked = "; ".join(f"{s}: {question(s, view.run)}" for s in settings)
    return Drawing(f"{NOTE}{asked}", [Chart(grid(view, settings, cells, LOOK), rows, told, height)])


def _told(method: str, setting: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "method": method, "setting": setting, "value": verdict.succeeded / verdict.buckets, **vars(verdict),
        "fails": _fails(verdict),
    }  # fmt: skip


def _fails(verdict: Verdict) -> bool:
    return verdict.failed * 2 > verdict.buckets


def _cell(place: int, row: int, verdict: Verdict, name: str) -> Cell:
    said = f"{verdict.succeeded}/{verdict.buckets}"
    told = f"{name}: success in {verdict.succeeded}, failure in {verdict.failed} of {verdict.buckets} buckets"
    fails = _fails(verdict)
    return Cell(place, row, verdict.succeeded / verdict.buckets, f"{said}\n✕" if fails else said, told, "@fail" * fails)
