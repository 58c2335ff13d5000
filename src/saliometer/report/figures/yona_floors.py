"""What E is made of: the distances between trained and random models, and the two noise floors."""

from functools import partial
from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona_values, _zhang, figure
from saliometer.summary import Estimate

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

LANES = {
    "B": _zhang.Lane("trained and random", "@method"),
    "W_T": _zhang.Lane("two trained", "@own"),
    "W_R": _zhang.Lane("two random", "@secondary"),
}


@figure("Noise floors", of="yona", order=55, group="What E is made of")
def yona_floors(study: "Study") -> Drawing | None:
    e = study.evidence
    parts = [(task, name, partial(_floor, e, task, name)) for task in e.tasks for name in LANES]
    chart = _yona_values.panels(e, parts, LANES, "Mean distances of maps by task and method", across=4)
    if chart is None:
        return None
    note = (
        "The mean distance of two maps of one image: by a trained and a random model (B), by two trained (W_T), by two "
        "random ones (W_R). Where two random models are nearly as far apart as a trained and a random one, most of "
        "the difference is seed noise."
    )
    return _zhang.drawing("yona_floors", note, [chart])


def _floor(e: "Evidence", task: str, name: str, method: str) -> Estimate:
    one = e.energy(task, method)
    return _yona_values.point({"B": one.between, "W_T": one.trained, "W_R": one.random}[name])
