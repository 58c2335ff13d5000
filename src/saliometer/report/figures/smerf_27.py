"""Overlap and focus in VGG16 (Figure 27 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._network import network
from saliometer.report.figures._study import NETWORKS
from saliometer.studies._smerf_study import Study


@figure("Overlap and focus: VGG16", of="smerf", order=270, paper="SMERF Figure 27", group=NETWORKS)
def smerf_27(study: Study) -> Drawing | None:
    return network(study, "vgg16", "VGG16")
