"""Overlap and focus in AlexNet (Figure 26 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._network import network
from saliometer.report.figures._study import NETWORKS
from saliometer.studies._smerf_study import Study


@figure("Overlap and focus: AlexNet", of="smerf", order=260, paper="SMERF Figure 26", group=NETWORKS)
def smerf_26(study: Study) -> Drawing | None:
    return network(study, "alexnet", "AlexNet")
