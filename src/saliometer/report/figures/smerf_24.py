"""PMAFL against SMAFL in every bucket, complex reasoning (Figure 24 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._pixels import pixels
from saliometer.report.figures._study import BUCKETS
from saliometer.studies._smerf_study import Study


@figure("Pixel by pixel: complex reasoning", of="smerf", order=240, paper="SMERF Figure 24", group=BUCKETS)
def smerf_24(study: Study) -> Drawing | None:
    return pixels(study, "complex")
