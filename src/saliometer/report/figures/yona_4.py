"""Figure 4 of Yona and Greenfeld: two photographs side by side, for random, pretrained and fine-tuned models."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure
from saliometer.report.figures._yona_pairs import GROUPS, numbers

if TYPE_CHECKING:
    from saliometer.studies.yona import Study


@figure("Two pictures side by side: which of them decides?", of="yona", order=30, paper=f"{_yona.PAPER} 4")
def yona_4(study: "Study") -> Drawing | None:
    drawing = _yona.cards(study, "pairs", GROUPS, numbers, images=3, wide=True)
    if drawing is None:
        return None
    note = (
        "Each image holds one picture of either group of five classes; the label is the class of the first group's. "
        "Models that were fine-tuned should mark its tile, random and pretrained ones both; those of the other group "
        "(ours) the other tile. All explain the label. F is the share of the tile that decides; DD is F by the "
        "fine-tuned less F by those of the other group."
    )
    return Drawing(note, html=drawing.html, rows=drawing.rows)
