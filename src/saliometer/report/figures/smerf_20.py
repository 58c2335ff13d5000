"""Maps from each method's lowest bucket, simple-nr (Figure 20 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._lowest import lowest
from saliometer.report.figures._study import LOOKED_AT
from saliometer.studies._smerf_study import Study


@figure("Maps at their worst: simple-nr", of="smerf", order=200, paper="SMERF Figure 20", group=LOOKED_AT)
def smerf_20(study: Study) -> Drawing | None:
    return lowest(study, "simple-nr")
