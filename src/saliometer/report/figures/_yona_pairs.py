"""Many pairs under one method, with what each model takes them for."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona
from saliometer.report.figures.yona_4 import GROUPS, _numbers

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

TASKS = {"random": "pairs", "pretrained": "pairs", "pairs": "pairs", "pairs2": "pairs2"}


def examples(study: "Study", method: str) -> Drawing | None:
    said = _yona.predicted(TASKS)
    drawing = _yona.cards(study, "pairs", GROUPS, _numbers, images=8, wide=True, methods=[method], told=said)
    if drawing is None:
        return None
    note = (
        "Under each map the class its model predicts; the map explains the label. The images were chosen before any "
        "was explained: every one so far apart, right or wrong."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)
