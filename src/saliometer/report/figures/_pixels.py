"""Attribution per pixel on what decides against that on what plays no part."""

import math

from saliometer.report.figures import Chart, Drawing
from saliometer.report.figures._grid import Cell, Look, grid
from saliometer.report.figures._study import seen
from saliometer.report.view import View
from saliometer.report.words import bucket
from saliometer.studies._smerf_study import Study
from saliometer.summary import Cell as Bucket

LOOK = Look(("@secondary", "@card", "@primary"), most=1, upright=True, wide=120, narrow=120, words=False, alpha=0.62)
ROW = 24
NOTE = (
    "Buckets that show both kinds of object, by how many times more attribution a pixel of the objects that decide "
    "gets than one of those that play no part (PMAFL over SMAFL, bucket means). Green is more than once, orange less: "
    "there the map marks what plays no part more strongly."
)


def pixels(study: Study, group: str) -> Drawing | None:
    view = seen(study, "black")
    primary, secondary = (view.scores(metric) for metric in ("pmafl", "smafl")) if view else (None, None)
    if not view or not primary or not secondary:
        return None
    both = [primary.cells[i] for i in primary.of(group) if primary.cells[i] in secondary.values]
    rows, cells = [], []
    for column, (setting, number) in enumerate(both):
        for row, method in enumerate(view.methods):
            shown = bucket(number, view.run)
            p, s = (
                float(one.means[one.cells.index((setting, number)), one.methods.index(method)])
                for one in (primary, secondary)
            )
            if not math.isnan(p + s):
                rows.append({"method": method, "setting": setting, "shows": shown, "pmafl": p, "smafl": s})
                cells.append(_cell(column, row, p, s, f"{method}, {setting}, {shown}"))
    if not cells:
        return None
    worse = sum(bool(cell.ink) for cell in cells)
    told = f"Attribution per pixel, {len(view.methods)} methods by {len(both)} buckets of {group} reasoning"
    option = grid(view, [_column(view, one) for one in both], cells, LOOK)
    said = f" {worse} of {len(rows)} cells are orange. By the definition {view.definition}."
    return Drawing(NOTE + said, [Chart(option, rows, told, LOOK.narrow + 8 + ROW * len(view.methods))])


def _cell(column: int, row: int, p: float, s: float, name: str) -> Cell:
    """Coloured by the share of the pixel that decides, so that a half is the same on both."""
    share = p / (p + s) if p + s > 0 else 0.5
    times = p / s if s > 0 else math.inf if p > 0 else 1.0
    return Cell(column, row, share, _word(times), f"{name}: PMAFL {p:.2g}, SMAFL {s:.2g}", "@ink" * (s > p))


def _word(times: float) -> str:
    """At most four letters, and on the right side of one."""
    if math.isinf(times):
        return "∞"
    if times >= 9.95:
        return f"{times:.0f}" if times < 999.5 else ">999"
    return f"{times:.1f}" if abs(times - 1) > 0.05 else f"{times:.2f}"


def _column(view: View, cell: Bucket) -> str:
    setting, number = cell
    return f"{setting.rpartition('-')[2]}: {bucket(number, view.run).replace('Box1 + Box2', 'both')}"
