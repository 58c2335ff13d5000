"""Figure 9 for other methods (Figure 25 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._study import LOOKED_AT, seen
from saliometer.report.figures.smerf_9 import through
from saliometer.studies._smerf_paper import SHORT
from saliometer.studies._smerf_study import Study

NAMES = ("G", "LRP-z", "DL-R")  # the paper does not say which DeepLIFT


@figure("The same kind of image: other methods", of="smerf", order=250, paper="SMERF Figure 25", group=LOOKED_AT)
def smerf_25(study: Study) -> Drawing | None:
    view = seen(study, "black")
    methods = [method for method in view.methods if SHORT.get(method) in NAMES] if view else []
    return through(view, methods) if view and methods else None
