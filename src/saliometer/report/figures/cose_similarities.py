"""COSE with a correlation in SSIM's place."""

from saliometer.report.figures import Drawing, _zhang, figure
from saliometer.report.figures._cose import INKS, value
from saliometer.studies._cose_evidence import CORRELATIONS
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_study import Study

WORDS = {"default": "SSIM", "pearson": "Pearson", "spearman": "Spearman"}
NOTE = (
    "COSE in percent with Pearson's and Spearman's correlation of the two maps in the place of SSIM, mode default, "
    "mean over models with 95 % intervals over images. The paper's supplement says that conclusions are the same."
)


@figure("Does another similarity say the same?", of="cose", order=100)
def cose_similarities(study: Study) -> Drawing | None:
    e = study.evidence
    found = [
        value(m, WORDS[how], f, e.estimate("harmonic", e.models(family=f), m, how))
        for how in ("default", *CORRELATIONS)
        for m in METHODS
        for f in INKS
    ]
    values = [one for one in found if one]
    if not any(one.metric != "SSIM" for one in values):
        return None
    lanes = {f: _zhang.Lane(f, ink) for f, ink in INKS.items()}
    label = "COSE by method under three similarities, ConvNets and Transformers"
    return _zhang.drawing("cose_similarities", NOTE, [_zhang.chart(values, METHODS, lanes, label=label)])
