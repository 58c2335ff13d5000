"""Figure 8a with noise behind the objects (Figure 30a of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NOISE, seen, told
from saliometer.report.figures.smerf_8a import complex_
from saliometer.studies._smerf_study import Study


@figure("Noise: complex reasoning", of="smerf", order=300, paper="SMERF Figure 30a", group=NOISE)
def smerf_30a(study: Study) -> Drawing | None:
    view = seen(study, "noise")
    return told(view, complex_(view)) if view else None
