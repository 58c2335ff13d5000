"""Figure 8 of COSE: consistency, sensitivity and COSE by the size of the change."""

import math

from saliometer.cose.operations import BINS
from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._lines import Line, chart
from saliometer.studies._cose_study import Study
from saliometer.studies._cose_tables import KINDS

LINES = {"consistency": "@primary", "sensitivity": "@secondary", "harmonic": "@ink"}
NOTE = (
    "Means over models and methods of data pairs by the size of the operation: bin 1 is the smallest, 30 the largest "
    "of either sign; only the seven operations that have a size. Mode published. A plain edge detector shows the "
    "same fall with photometric size: much of it is the operations' own doing. Each line is of the models and methods "
    "that have a value in a bin: where few predictions change, sensitivity and COSE rest on few of them."
)


@figure("Does the size of the change matter?", of="cose", order=90, paper="Daroya et al., Figure 8")
def cose_8(study: Study) -> Drawing | None:
    charts = []
    for word, kinds in KINDS.items():
        lines = []
        for name, values in study.evidence.curve(kinds).items():
            points = {float(place): one / 100 for place, one in enumerate(values, start=1) if not math.isnan(one)}
            if points:
                lines.append(Line("COSE" if name == "harmonic" else name, points, colour=LINES[name]))
        if lines:
            title = f"{word.capitalize()} operations"
            label = f"Consistency, sensitivity and COSE by bin, {word}"
            charts.append(chart(lines, "bin", "percent", label, title=title, ends=(1, BINS)))
    return Drawing(NOTE, charts) if charts else None
