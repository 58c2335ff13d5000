"""Overlap of the map's highest pixels with what decides, mean and lowest bucket (Figure 2 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import COMPLEX, SIMPLE, about_paper, series
from saliometer.report.view import View

NOTE = (
    "PIOU: the overlap of the map's highest pixels, as many as the deciding objects have, with those objects; 100 is a "
    "perfect map. The mean over buckets and the lowest bucket."
)


@figure("Overlap with what decides", of="bench", order=20, paper="SMERF Figure 2")
def smerf_2(view: View) -> Drawing | None:
    """Simple reasoning beside complex."""
    scores = view.scores("piou")
    panels = [
        Panel(
            f"PIOU, {part.name}",
            [
                series(view, scores, part, "mean over buckets", shift=-5),
                series(view, scores, part, "lowest bucket", join="min", look="ring", shift=5),
            ],
            half=True,
        )
        for part in (SIMPLE, COMPLEX)
    ]
    drawn = chart(view, panels, "PIOU by method, mean and lowest bucket")
    return Drawing(NOTE + about_paper(view, [drawn]), [drawn]) if drawn else None
