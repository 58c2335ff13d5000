"""PMAFL against SMAFL in every bucket, simple reasoning (Figure 23 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._pixels import pixels
from saliometer.report.figures._study import BUCKETS
from saliometer.studies._smerf_study import Study


@figure("Pixel by pixel: simple reasoning", of="smerf", order=230, paper="SMERF Figure 23", group=BUCKETS)
def smerf_23(study: Study) -> Drawing | None:
    return pixels(study, "simple")
