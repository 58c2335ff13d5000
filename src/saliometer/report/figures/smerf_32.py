"""Figure 6a with photographs behind the objects (Figure 32 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import NATURAL, seen, told
from saliometer.report.figures.smerf_6a import simple
from saliometer.studies._smerf_study import Study

LEAD = "Photographs lie behind the objects, and the models were trained on such images."


@figure("Photographs: simple reasoning", of="smerf", order=320, paper="SMERF Figure 32", group=NATURAL)
def smerf_32(study: Study) -> Drawing | None:
    view = seen(study, "natural")
    return told(view, simple(view), LEAD) if view else None
