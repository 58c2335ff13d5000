"""Figure 6a with overlap in the place of focus (Figure 17a of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import IOU
from saliometer.report.figures._study import OVERLAP, seen, told
from saliometer.report.figures.smerf_6a import simple
from saliometer.studies._smerf_study import Study


@figure("Overlap: simple reasoning", of="smerf", order=170, paper="SMERF Figure 17a", group=OVERLAP)
def smerf_17a(study: Study) -> Drawing | None:
    view = seen(study, "black")
    return told(view, simple(view, IOU)) if view else None
