"""Pairs under one method or many: groups of models, numbers, and many examples with what models take them for."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

GROUPS = {"random": "random", "pretrained": "pretrained", "pairs": "fine-tuned", "pairs2": "other group"}
TASKS = {"random": "pairs", "pretrained": "pairs", "pairs": "pairs", "pairs2": "pairs2"}


def numbers(e: "Evidence", method: str) -> list[tuple[str, str]]:
    dd = e.dissociation("pairs", method)
    groups = [group for group in ("pairs", "pretrained", "random") if e.focused("pairs", group)]
    return [
        *_yona.energy(e, "pairs", method), ("DD", f"{dd.value:.3f} [{dd.low:.3f}, {dd.high:.3f}]"),
        (f"F: {' / '.join(GROUPS[group] for group in groups)}", _yona.shares(e, "pairs", groups, method)),
    ]  # fmt: skip


def examples(study: "Study", method: str) -> Drawing | None:
    said = _yona.predicted(TASKS)
    drawing = _yona.cards(study, "pairs", GROUPS, numbers, images=8, wide=True, methods=[method], told=said)
    if drawing is None:
        return None
    note = (
        "Under each map the class its model predicts; the map explains the label. The images were chosen before any "
        "was explained, evenly from all, right or wrong."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)
