"""Overlap and focus in one larger network."""

from saliometer.report.figures import Drawing
from saliometer.report.figures._marks import groups, marked
from saliometer.report.figures._study import seen
from saliometer.studies._smerf_study import Study


def network(study: Study, part: str, name: str) -> Drawing | None:
    view = seen(study, part)
    if not view:
        return None
    note = (
        f"PIOU and PAFL of {name} side by side, mean over buckets and lowest bucket: a map may find the object and "
        "still leave most of its attribution elsewhere."
    )
    panels = {metric.upper(): groups(view, metric) for metric in ("piou", "pafl")}
    return marked(panels, note, f"PIOU and PAFL of {name} by method, simple and complex")
