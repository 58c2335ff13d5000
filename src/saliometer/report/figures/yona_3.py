"""Figure 3 of Yona and Greenfeld: the same digits with shapes, for models that name the shape or the digit."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

GROUPS = {"random": "random", "t1": "t1: shape", "t2": "t2: digit"}


@figure("A shape beside the digit: the same image, two tasks", of="yona", order=20, paper=f"{_yona.PAPER} 3")
def yona_3(study: "Study") -> Drawing | None:
    drawing = _yona.cards(study, "shapes", GROUPS, _numbers, images=4)
    if drawing is None:
        return None
    note = (
        "The same images by models that learned to name the shape (t1) or the digit (t2). What is evidence for one is "
        "a distraction for the other, so a method that shows what was learned must move. F is the share on the shape "
        "of the mass on shape and digit: t1 / random / t2; DD is F by t1's models less F by t2's, 0 for anything blind "
        "to the weights and 1 for a perfect map."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)


def _numbers(e: "Evidence", method: str) -> list[tuple[str, str]]:
    dd = e.dissociation("t1", method)
    on_shape = [e.focus("t1", group, method).value for group in ("t1", "random", "t2")]
    return [
        *_yona.energy(e, "t1", method), *_yona.energy(e, "t2", method),
        ("DD", f"{dd.value:.3f} [{dd.low:.3f}, {dd.high:.3f}]"),
        ("F on the shape", " / ".join(f"{share:.2f}" for share in on_shape)),
    ]  # fmt: skip
