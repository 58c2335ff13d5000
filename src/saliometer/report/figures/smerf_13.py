"""Images of every setting (Figure 13 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._shown import OUTLINES, shown
from saliometer.report.figures._study import LOOKED_AT, seen
from saliometer.studies._smerf_study import Study

NOTE = f"One image of each bucket in every setting, with its label and the class that the model predicts. {OUTLINES}"


@figure("The images", of="smerf", order=190, paper="SMERF Figure 13", group=LOOKED_AT)
def smerf_13(study: Study) -> Drawing | None:
    view = seen(study, "black")
    return shown(view, NOTE) if view else None
