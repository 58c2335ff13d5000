"""Focus on what decides, robust models against plain ones (Figure 28 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._robust import against
from saliometer.report.figures._study import NETWORKS
from saliometer.studies._smerf_study import Study


@figure("Focus on what decides: robust models", of="smerf", order=280, paper="SMERF Figure 28", group=NETWORKS)
def smerf_28(study: Study) -> Drawing | None:
    return against(study, "pafl", " The same in PIOU is Figure 11, above.")
