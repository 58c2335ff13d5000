"""Figure 1 of Yona and Greenfeld: digits of which a half may be missing, and what marks them."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

GROUPS = {"random.half": "random", "t": "digit model", "half": "half model"}


@figure("Half a digit: does the map follow the task?", of="yona", order=10, paper=f"{_yona.PAPER} 1")
def yona_1(study: "Study") -> Drawing | None:
    drawing = _yona.cards(study, "digits", GROUPS, _numbers, images=3)
    if drawing is None:
        return None
    note = (
        "The same intact digits, explained for a random model, one that names the digit, and one that tells whether "
        "the bottom half is there. For the last the answer lies in the bottom half alone; a method that is blind to "
        "what was learned shows the same thing three times. Red speaks for the class, blue against it. The share is "
        "that of the bottom half in all the mass: half model / digit model / random."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)


def _numbers(e: "Evidence", method: str) -> list[tuple[str, str]]:
    return [
        *_yona.energy(e, "half", method), ("bottom half", _yona.shares(e, "half", ("half", "t", "random"), method)),
    ]  # fmt: skip
