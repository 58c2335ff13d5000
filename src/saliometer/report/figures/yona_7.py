"""Figure 7 of Yona and Greenfeld: more pairs under guided backprop."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure
from saliometer.report.figures._yona_pairs import examples

if TYPE_CHECKING:
    from saliometer.studies.yona import Study


@figure("More pairs: guided backprop", of="yona", order=107, paper=f"{_yona.PAPER} 7", group=_yona.MORE)
def yona_7(study: "Study") -> Drawing | None:
    return examples(study, "guided_backprop")
