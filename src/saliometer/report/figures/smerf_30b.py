"""Figure 8b with noise behind the objects (Figure 30b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NOISE, seen, told
from saliometer.report.figures.smerf_8b import worst
from saliometer.studies._smerf_study import Study


@figure("Noise: the worst bucket", of="smerf", order=301, paper="SMERF Figure 30b", group=NOISE)
def smerf_30b(study: Study) -> Drawing | None:
    view = seen(study, "noise")
    return told(view, worst(view)) if view else None
