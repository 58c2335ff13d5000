"""The classical curves on the natural task, on the same models."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._yona_curves import WORDS, curve

if TYPE_CHECKING:
    from saliometer.studies.yona import Study


@figure("The classical curves", of="yona", order=90, paper="Adebayo et al., Figure 4")
def yona_curves(study: "Study") -> Drawing | None:
    charts = [chart for order in WORDS if (chart := curve(study.evidence, "t", order))]
    if not charts:
        return None
    note = (
        "Layers drawn anew, one after another from the output or from the input, or one alone; the map of the changed "
        "model is compared with that of the whole one. Each model explains its own prediction. Early layers stay "
        "intact for most of the way down, so some likeness must remain there (Binder et al.)."
    )
    return Drawing(note, charts)
