"""What COSE says of maps that explain nothing."""

from saliometer.cose.controls import CONTROLS
from saliometer.report.figures import Drawing, _zhang, figure
from saliometer.report.figures._cose import value
from saliometer.studies._cose_evidence import MODES
from saliometer.studies._cose_paper import METHODS, table
from saliometer.studies._cose_study import Study

NOTE = (
    "Maps that explain nothing, on the same pairs, mean over models with 95 % intervals over images, beside the best "
    "and the worst method. Fresh ones are drawn anew for every image: chance, which cannot pass 50. A map that "
    "writes down the predicted label wins: label_level, a grey level for each class, and parity_edge, edges turned "
    "light for dark for odd classes. The highest cell of the paper's table is {highest}. s-model is the sensitivity "
    "to other models alone: exactly 0 for what never looks at the model or its label."
)


@figure("What do maps that explain nothing score?", of="cose", order=110)
def cose_controls(study: Study) -> Drawing | None:
    e = study.evidence
    models = [one for one in e.models() if e.has(one, "constant")]
    if not models:
        return None
    means = {m: e.estimate("harmonic", models, m).value for m in METHODS}
    ranked = sorted((m for m in means if means[m] == means[m]), key=lambda m: -means[m])
    names = [*dict.fromkeys([*ranked[:1], *ranked[-1:]]), *CONTROLS]
    found = [
        value(name, metric, mode, e.by(mode).estimate(word, models, name))
        for mode in MODES
        for name in names
        for metric, word in (("COSE", "harmonic"), ("s_model", "sensitivity_model"))
    ]
    lanes = {
        MODES[0]: _zhang.Lane(f"{MODES[0]} (R = 2)", "@method"),
        MODES[1]: _zhang.Lane(f"{MODES[1]} (R = 1)", "@own"),
    }
    label = f"COSE of {len(CONTROLS)} controls beside the best and the worst method"
    chart = _zhang.chart([one for one in found if one], names, lanes, label=label, across=2, edges=(13, 38))
    return _zhang.drawing("cose_controls", NOTE.format(highest=max(table().values())), [chart])
