"""Maps from each method's lowest bucket, simple-fr (Figure 19 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._lowest import lowest
from saliometer.report.figures._study import LOOKED_AT
from saliometer.studies._smerf_study import Study


@figure("Maps at their worst: simple-fr", of="smerf", order=191, paper="SMERF Figure 19", group=LOOKED_AT)
def smerf_19(study: Study) -> Drawing | None:
    return lowest(study, "simple-fr")
