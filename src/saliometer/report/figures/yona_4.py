"""Figure 4 of Yona and Greenfeld: two photographs side by side, for random, pretrained and fine-tuned models."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

GROUPS = {"random": "random", "pretrained": "pretrained", "pairs": "fine-tuned", "pairs2": "other group"}


@figure("Two pictures side by side: which of them decides?", of="yona", order=30, paper=f"{_yona.PAPER} 4")
def yona_4(study: "Study") -> Drawing | None:
    drawing = _yona.cards(study, "pairs", GROUPS, _numbers, images=3, wide=True)
    if drawing is None:
        return None
    note = (
        "Each image holds one picture of either group of five classes; the label is the class of the first group's. "
        "Models that were fine-tuned should mark its tile, random and pretrained ones both; those of the other group "
        "(ours) the other tile. All explain the label. F is the share of the tile that decides: fine-tuned / "
        "pretrained / random; DD is F by the fine-tuned less F by those of the other group."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)


def _numbers(e: "Evidence", method: str) -> list[tuple[str, str]]:
    dd = e.dissociation("pairs", method)
    groups = [group for group in ("pairs", "pretrained", "random") if e.focused("pairs", group, method)]
    return [
        *_yona.energy(e, "pairs", method), ("DD", f"{dd.value:.3f} [{dd.low:.3f}, {dd.high:.3f}]"),
        ("F", _yona.shares(e, "pairs", groups, method)),
    ]  # fmt: skip
