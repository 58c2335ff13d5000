"""Figure 8b with overlap in the place of focus (Figure 18b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import OVERLAP, seen, told
from saliometer.report.figures.smerf_8b import worst
from saliometer.studies._smerf_study import Study


@figure("Overlap: the worst bucket", of="smerf", order=181, paper="SMERF Figure 18b", group=OVERLAP)
def smerf_18b(study: Study) -> Drawing | None:
    view = seen(study, "black")
    return told(view, worst(view, "piou")) if view else None
