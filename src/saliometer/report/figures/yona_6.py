"""Figure 6 of Yona and Greenfeld: more pairs under the plain gradient."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _yona, figure
from saliometer.report.figures._yona_pairs import examples

if TYPE_CHECKING:
    from saliometer.studies.yona import Study


@figure("More pairs: the plain gradient", of="yona", order=106, paper=f"{_yona.PAPER} 6", group=_yona.MORE)
def yona_6(study: "Study") -> Drawing | None:
    return examples(study, "gradient")
