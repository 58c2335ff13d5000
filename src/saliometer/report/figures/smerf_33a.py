"""Figure 8a with photographs behind the objects (Figure 33a of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NATURAL, seen, told
from saliometer.report.figures.smerf_8a import complex_
from saliometer.studies._smerf_study import Study


@figure("Photographs: complex reasoning", of="smerf", order=330, paper="SMERF Figure 33a", group=NATURAL)
def smerf_33a(study: Study) -> Drawing | None:
    view = seen(study, "natural")
    return told(view, complex_(view)) if view else None
