"""Figure 7 of COSE: the mean over models on each data set, method by method."""

from saliometer.report.figures import Drawing, _zhang, figure
from saliometer.report.figures._cose import MORE_INKS, value
from saliometer.studies._cose_paper import METHODS, mean, table
from saliometer.studies._cose_study import Study

NOTE = (
    "COSE in percent, mean over models, with 95 % intervals over images, mode published; hollow diamonds are the "
    "means of the paper's settings on that data set."
)


@figure("Which data sets are hard?", of="cose", order=80, paper="Daroya et al., Figure 7")
def cose_7(study: Study) -> Drawing | None:
    e, found = study.evidence, []
    for data in e.data:
        for m in METHODS:
            theirs = mean(m, data=data) if (data, "ResNet50", m) in table() else None
            found.append(value(m, "COSE", data, e.estimate("harmonic", e.models(data=data), m), theirs))
    values = [one for one in found if one]
    if not values:
        return None
    lanes = {data: _zhang.Lane(data, MORE_INKS[place % len(MORE_INKS)]) for place, data in enumerate(e.data)}
    label = f"Mean COSE by method on {', '.join(e.data)}"
    chart = _zhang.chart(values, METHODS, lanes, label=label, across=1, bounds=(0, 100))
    return _zhang.drawing("cose_7", NOTE, [chart])
