"""Figure 6 of COSE: how consistent each method is."""

from saliometer.report.figures import Drawing, _zhang, figure
from saliometer.report.figures._cose import INKS, value
from saliometer.studies._cose_evidence import MODES
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_study import Study

NOTE = (
    "Consistency: the mean similarity of maps where a changed image keeps its prediction, in percent, mean over "
    "models with 95 % intervals over images; in both modes. The paper shows it as distributions and prints no "
    "numbers: GradCAM first, then GradCAM++ and BlurIG."
)


@figure("Which maps stay when the prediction stays?", of="cose", order=70, paper="Daroya et al., Figure 6")
def cose_6(study: Study) -> Drawing | None:
    found = []
    for mode in MODES:
        e = study.evidence.by(mode)
        for m in METHODS:
            found.append(value(m, mode, "all", e.estimate("consistency", e.models(), m)))
            found += [value(m, mode, f, e.estimate("consistency", e.models(family=f), m)) for f in INKS]
    values = [one for one in found if one]
    if not values:
        return None
    lanes = {"all": _zhang.Lane("all models", "@ink")} | {f: _zhang.Lane(f, ink) for f, ink in INKS.items()}
    label = "Mean consistency by method, of all models, ConvNets and Transformers"
    return _zhang.drawing(
        "cose_6", NOTE, [_zhang.chart(values, METHODS, lanes, label=label, across=2, bounds=(0, 100))]
    )
