"""How far training moves the maps, beyond what seeds do: E by task and method."""

from functools import partial
from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona_values, _zhang, figure
from saliometer.summary import Estimate

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study


@figure("Does training move the map?", of="yona", order=50)
def yona_energy(study: "Study") -> Drawing | None:
    e = study.evidence
    found = [(f"E: {task}", "E", partial(_effect, e, task)) for task in e.tasks]
    if "t" in e.tasks:
        found.append(("E: t, shuffled labels", "E", partial(_effect, e, "t", against="labels")))
    lanes = {"E": _zhang.Lane("E", "@method")}
    chart = _yona_values.panels(e, found, lanes, "E by task and method with 95 % intervals", across=4)
    if chart is None:
        return None
    note = (
        "E is how much farther apart maps of trained and random models are than those of two trainings or of two "
        "random draws: 0 for anything that does not see the weights, noise included. Distances are total variation "
        "(0 to 1) on the same images; intervals resample models and images. A method is sensitive where E is above 0 "
        "for sure and its permutation test, corrected for all methods and tasks, says so too; insensitive where E is "
        "below 0.02 for sure."
    )
    return _zhang.drawing("yona_energy", note, [chart])


def _effect(e: "Evidence", task: str, method: str, against: str = "random") -> Estimate:
    return e.energy(task, method, against=against).effect
