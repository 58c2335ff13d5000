"""The lowest bucket's PAFL, simple and complex reasoning (Figure 8b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import COMPLEX, SIMPLE, about_paper, condition, series
from saliometer.report.view import View

THREE = " The paper's value for complex reasoning covers only three of five settings and is not shown."


@figure("The worst bucket", of="bench", order=70, paper="SMERF Figure 8b")
def smerf_8b(view: View) -> Drawing | None:
    return worst(view)


def worst(view: View, metric: str = "pafl") -> Drawing | None:
    name, scores = metric.upper(), view.scores(metric)
    note = f"{name} in each method's worst bucket: what a map may be worth when one is unlucky."
    lowest = [
        series(view, scores, SIMPLE, "simple reasoning", join="min", shift=-5),
        series(view, scores, COMPLEX, "complex reasoning", join="min", shift=5, colour="@fail"),
    ]
    drawn = chart(view, [Panel(f"{name} in the lowest bucket", lowest, half=True)], f"{name} in the lowest bucket")
    if drawn is None:
        return None
    three = THREE if metric == "pafl" and condition(view.run) == "black" else ""
    return Drawing(note + three + about_paper(view, [drawn]), [drawn])
