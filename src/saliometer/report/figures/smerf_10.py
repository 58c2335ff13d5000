"""Overlap of the map's highest pixels with what decides, in larger networks (Figure 10 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._marks import groups, marked
from saliometer.report.figures._study import seen
from saliometer.studies._smerf_study import Study

PARTS = {"vgg16": "VGG16", "alexnet": "AlexNet"}
NOTE = (
    "PIOU as in Figure 2, of networks with more layers that were trained on the same images: mean over buckets, and "
    "the lowest bucket. A method without marks cannot walk through the network."
)


@figure("Overlap with what decides: larger networks", of="smerf", order=110, paper="SMERF Figure 10")
def smerf_10(study: Study) -> Drawing | None:
    views = {name: seen(study, part) for part, name in PARTS.items()}
    panels = {f"PIOU, {name}": groups(view, "piou") for name, view in views.items() if view}
    return marked(panels, NOTE, "PIOU of larger networks by method, simple and complex") if panels else None
