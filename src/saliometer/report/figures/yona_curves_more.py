"""The classical curves on t1 and t2, and by other measures."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._yona_curves import curve
from saliometer.studies._yona_tables import MEASURES

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

GROUP = "More classical curves"


@figure("On t1 and t2, and by other measures", of="yona", order=91, group=GROUP)
def yona_curves_more(study: "Study") -> Drawing | None:
    e = study.evidence
    wanted = [(task, order, "spearman_abs") for task in ("t1", "t2") for order in ("top_down", "bottom_up")]
    wanted += [("t", "top_down", measure) for measure in MEASURES if measure != "spearman_abs"]
    charts = [chart for task, order, measure in wanted if (chart := curve(e, task, order, measure))]
    return Drawing("The same lines as above.", charts) if charts else None
