"""Figure 6b with overlap in the place of focus (Figure 17b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import IOU
from saliometer.report.figures._study import OVERLAP, seen, told
from saliometer.report.figures.smerf_6b import by_number
from saliometer.studies._smerf_study import Study


@figure("Overlap by the number of objects", of="smerf", order=171, paper="SMERF Figure 17b", group=OVERLAP)
def smerf_17b(study: Study) -> Drawing | None:
    view = seen(study, "black")
    return told(view, by_number(view, IOU)) if view else None
