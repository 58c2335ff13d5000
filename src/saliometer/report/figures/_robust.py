"""Robust models against plain ones."""

from saliometer.report.figures import Drawing
from saliometer.report.figures._marks import conditions, marked
from saliometer.report.figures._smerf import COMPLEX, SIMPLE
from saliometer.report.figures._study import seen
from saliometer.studies._smerf_study import Study

NOTE = (
    "{metric} of models trained further on attacked images, against the plain ones that they started from, on the same "
    "images: mean over buckets, and the lowest bucket."
)


def against(study: Study, metric: str, more: str = "") -> Drawing | None:
    robust, plain = seen(study, "robust"), seen(study, "black")
    if not robust or not plain:
        return None
    views, name = {"robust": robust, "plain": plain}, metric.upper()
    panels = {f"{name}, {part.name}": conditions(views, metric, part) for part in (SIMPLE, COMPLEX)}
    return marked(panels, NOTE.format(metric=name) + more, f"{name} of robust and plain models by method")
