"""The lowest bucket's PAFL, simple and complex reasoning (Figure 8b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import COMPLEX, SIMPLE, about_paper, series
from saliometer.report.view import View

NOTE = (
    "PAFL in each method's worst bucket: what a map may be worth when one is unlucky. The paper's value for complex "
    "reasoning covers only three of five settings and is not shown."
)


@figure("The worst bucket", of="bench", order=70, paper="SMERF Figure 8b")
def smerf_8b(view: View) -> Drawing | None:
    lowest = [
        series(view, view.primary, SIMPLE, "simple reasoning", join="min", shift=-5),
        series(view, view.primary, COMPLEX, "complex reasoning", join="min", shift=5, colour="@fail"),
    ]
    drawn = chart(view, [Panel("PAFL in the lowest bucket", lowest, half=True)], "PAFL in the lowest bucket by method")
    return Drawing(NOTE + about_paper(view, [drawn]), [drawn]) if drawn else None
