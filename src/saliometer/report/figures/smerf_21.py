"""Maps from each method's lowest bucket, complex-cr2 (Figure 21 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._lowest import lowest
from saliometer.report.figures._study import LOOKED_AT
from saliometer.studies._smerf_study import Study


@figure("Maps at their worst: complex-cr2", of="smerf", order=210, paper="SMERF Figure 21", group=LOOKED_AT)
def smerf_21(study: Study) -> Drawing | None:
    return lowest(study, "complex-cr2")
