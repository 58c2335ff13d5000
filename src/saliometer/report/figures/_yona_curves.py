"""Similarity to the whole model's map while layers are randomised, a line for each method."""

from contextlib import suppress
from typing import TYPE_CHECKING

from saliometer.report.figures import Chart, _lines
from saliometer.studies._claims import MissingError
from saliometer.studies._yona_evidence import mean_known
from saliometer.studies._yona_tables import MEASURES

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence

WORDS = {
    "top_down": "from the output down, layer after layer", "bottom_up": "from the input up, layer after layer",
    "independent": "one layer alone",
}  # fmt: skip


def curve(e: "Evidence", task: str, order: str, measure: str = "spearman_abs") -> Chart | None:
    """None where no method was run so."""
    lines, layers = [], list[str]()
    for method in (*e.methods, *e.controls):
        with suppress(MissingError):
            found = e.curve(task, method, order, measure)
            layers = layers or list(found)
            start = {} if order == "independent" else {0.0: 1.0}
            means = {float(place): mean_known(values) for place, values in enumerate(found.values(), 1)}
            lines.append(_lines.Line(method, start | {place: mean for place, mean in means.items() if mean == mean}))
    if not lines:
        return None
    title = f"{task}, {WORDS[order]}: {MEASURES[measure]}"
    lowest = min(0, *(10 * int(10 * value // 1) for line in lines for value in line.points.values()))
    return _lines.chart(
        lines, f"layers randomised: {', '.join(layers)}", "similarity x100", title, title=title, lowest=lowest
    )  # fmt: skip
