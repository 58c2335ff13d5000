"""Figure 6a with noise behind the objects (Figure 29 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NOISE, seen, told
from saliometer.report.figures.smerf_6a import simple
from saliometer.studies._smerf_study import Study

LEAD = "Noise of random colours lies behind the objects, and the models were trained on such images."


@figure("Noise: simple reasoning", of="smerf", order=290, paper="SMERF Figure 29", group=NOISE)
def smerf_29(study: Study) -> Drawing | None:
    view = seen(study, "noise")
    return told(view, simple(view), LEAD) if view else None
