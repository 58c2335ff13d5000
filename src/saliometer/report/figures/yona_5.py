"""Figure 5 of Yona and Greenfeld: natural digits by random and trained models, and what they take them for."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure
from saliometer.studies._claims import MissingError

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

GROUPS = {"random": "random", "t": "digit model", "labels": "shuffled labels"}


@figure("Natural digits", of="yona", order=100, paper=f"{_yona.PAPER} 5", group=_yona.MORE)
def yona_5(study: "Study") -> Drawing | None:
    said = _yona.predicted(dict.fromkeys(GROUPS, "t"))
    drawing = _yona.cards(study, "digits", GROUPS, _numbers, images=3, told=said)
    if drawing is None:
        return None
    note = (
        "The natural task, on which the original check was made. Under each map the class it explains, the model's own "
        "prediction; a random model tends to say the same of every image. The model of shuffled labels learned its "
        "training images by heart."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)


def _numbers(e: "Evidence", method: str) -> list[tuple[str, str]]:
    found = _yona.energy(e, "t", method)
    try:
        other = e.energy("t", method, against="labels").effect
        found.append(("E against shuffled labels", f"{other.value:.3f} [{other.low:.3f}, {other.high:.3f}]"))
        found.append(("Spearman (abs), trained with random", f"{e.similarity('t', method).value:.2f}"))
    except MissingError:
        pass
    return found
