"""Images with photographs behind the objects (Figure 31 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._shown import OUTLINES, shown
from saliometer.report.figures._study import NATURAL, seen
from saliometer.studies._smerf_study import Study

NOTE = (
    "One image of each bucket in every setting, with photographs behind the objects, its label and the class that the "
    f"model predicts. {OUTLINES}"
)


@figure("The images, with photographs", of="smerf", order=310, paper="SMERF Figure 31", group=NATURAL)
def smerf_31(study: Study) -> Drawing | None:
    view = seen(study, "natural")
    return shown(view, NOTE) if view else None
