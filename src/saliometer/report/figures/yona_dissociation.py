"""Whether maps lie on what decides: double dissociation on identical images, and focus by group of models."""

from functools import partial
from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona_values, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

LANES = {
    "own": _zhang.Lane("learned this task", "@method"),
    "random": _zhang.Lane("random", "@secondary"),
    "other": _zhang.Lane("learned the other task", "@own"),
}
OTHER = {"half": "t", "t1": "t2", "t2": "t1", "pairs": "pairs2", "pairs2": "pairs"}


@figure("Do the maps mark what was learned?", of="yona", order=60)
def yona_dissociation(study: "Study") -> Drawing | None:
    e = study.evidence
    tasks = [task for task in OTHER if task in e.tasks]
    found = [(f"DD: {task}", "own", partial(e.dissociation, task)) for task in ("t1", "pairs") if task in tasks]
    first = _yona_values.panels(
        e, found, {"own": _zhang.Lane("DD", "@method")}, "Double dissociation by method with 95 % intervals", across=3,
        bounds=(-0.2, 1.0),
    )  # fmt: skip
    groups = [
        (f"F: {task}", lane, partial(e.focus, task, group))
        for task in tasks
        for lane, group in (("own", task), ("random", "random"), ("other", OTHER[task]))
    ]
    second = _yona_values.panels(e, groups, LANES, "Focus on what decides, by task, method and models", across=3)
    charts = [chart for chart in (first, second) if chart is not None]
    if not charts:
        return None
    areas = ", ".join(f"{task} {e.area(task):.2f}" for task in tasks)
    note = (
        "DD is how much more of a map's mass lies on one of two objects by models that learned to name it than by "
        "models that learned to name the other, on the same images: 0 for anything blind to the weights, whatever the "
        "image, and 1 for a perfect map. Below it F, the share of what decides in the mass on what decides and what "
        f"distracts. A flat map has the share of its area: {areas}."
    )
    return _zhang.drawing("yona_dissociation", note, charts)
