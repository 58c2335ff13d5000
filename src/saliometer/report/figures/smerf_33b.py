"""Figure 8b with photographs behind the objects (Figure 33b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NATURAL, seen, told
from saliometer.report.figures.smerf_8b import worst
from saliometer.studies._smerf_study import Study


@figure("Photographs: the worst bucket", of="smerf", order=331, paper="SMERF Figure 33b", group=NATURAL)
def smerf_33b(study: Study) -> Drawing | None:
    view = seen(study, "natural")
    return told(view, worst(view)) if view else None
