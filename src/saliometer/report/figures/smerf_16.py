"""How focus moves when the toy map changes (Figure 16 of Kim et al., 2022)."""

from collections.abc import Mapping

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._lines import Line, chart
from saliometer.report.figures._study import TOYS
from saliometer.report.figures.smerf_14 import stored
from saliometer.studies._smerf_study import Study
from saliometer.studies._smerf_toy import toy_scores

SWEEP = [round(0.3 * step, 1) for step in range(11)]  # of B
BEHIND = (0.001, 0.8)  # the backgrounds at which B is swept
GREYS, VALUE = [0.001, *(round(0.05 * step, 2) for step in range(1, 21))], 0.8  # of the background, with B at this
NOTE = (
    "The toy map of Figure 14 with other values of B, then with other backgrounds; A stays at 1. On a dark background "
    "PAFL falls and SAFL rises as B grows. On a bright one it is the background that takes the attribution until B is "
    "brighter: then scaling the map from 0 to 1 makes the background 0, and PAFL jumps. Computed here, with the "
    "metrics of this report; hollow diamonds are the paper's."
)


@figure("What moves the focus", of="smerf", order=160, paper="SMERF Figure 16", group=TOYS)
def smerf_16(study: Study) -> Drawing | None:
    """Of every study: it needs no run."""
    charts = [
        _swept("B", {b: (b, behind) for b in SWEEP}, f"Background {behind:g}, other values of B") for behind in BEHIND
    ]
    charts.append(_swept("background", {grey: (VALUE, grey) for grey in GREYS}, f"B {VALUE:g}, other backgrounds"))
    return Drawing(NOTE, charts)


def _swept(across: str, maps: Mapping[float, tuple[float, float]], title: str) -> Chart:
    """`maps` is where on the axis -> B and background of a toy map."""
    scores = {x: toy_scores(*toy) for x, toy in maps.items()}
    lines = []
    for metric, colour in (("pafl", "@primary"), ("safl", "@secondary")):
        known = {x: value for x, toy in maps.items() if (value := stored(metric, *toy)) == value}
        lines.append(Line(metric.upper(), {x: one[metric] for x, one in scores.items()}, known, colour))
    return chart(lines, across, "PAFL and SAFL", f"PAFL and SAFL of the toy map: {title}", title=title)
