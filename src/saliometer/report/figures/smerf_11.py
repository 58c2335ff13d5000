"""Overlap with what decides, robust models against plain ones (Figure 11 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._robust import against
from saliometer.studies._smerf_study import Study


@figure("Overlap with what decides: robust models", of="smerf", order=120, paper="SMERF Figure 11")
def smerf_11(study: Study) -> Drawing | None:
    return against(study, "piou")
