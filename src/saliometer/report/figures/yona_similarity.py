"""The original question: how alike are maps of trained and random models, on the natural task and on others."""

from functools import partial
from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona_values, _zhang, figure
from saliometer.studies._yona_tables import MEASURES
from saliometer.summary import Estimate

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

LANES = {
    "t": _zhang.Lane("t", "@method"), "t1": _zhang.Lane("t1", "@own"), "t2": _zhang.Lane("t2", "@secondary"),
}  # fmt: skip


@figure("How alike are maps of trained and random models?", of="yona", order=80)
def yona_similarity(study: "Study") -> Drawing | None:
    e = study.evidence
    found = [
        (words, task, partial(_alike, e, task, measure)) for measure, words in MEASURES.items() for task in LANES
    ]  # fmt: skip
    chart = _yona_values.panels(e, found, LANES, "Similarity of maps by measure, task and method", across=4)
    if chart is None:
        return None
    note = (
        "The measures of Adebayo et al., over all pairs of a trained and a random model: low is what their check calls "
        "good. The image itself and its edges get 1 in all of them. Noise gets 0 and would be the best method of all, "
        "which is why E has noise floors. A product with the image copies its structure into every map. Intervals are "
        "over training seeds."
    )
    return _zhang.drawing("yona_similarity", note, [chart])


def _alike(e: "Evidence", task: str, measure: str, method: str) -> Estimate:
    return e.similarity(task, method, measure)
