"""Figure 8a with overlap in the place of focus (Figure 18a of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import IOU
from saliometer.report.figures._study import OVERLAP, seen, told
from saliometer.report.figures.smerf_8a import complex_
from saliometer.studies._smerf_study import Study


@figure("Overlap: complex reasoning", of="smerf", order=180, paper="SMERF Figure 18a", group=OVERLAP)
def smerf_18a(study: Study) -> Drawing | None:
    view = seen(study, "black")
    return told(view, complex_(view, IOU)) if view else None
