"""Table 2 of the ten-methods study: fidelity for three target classes."""

from typing import TYPE_CHECKING

from saliometer.judgement import FLOORS
from saliometer.report.figures import Drawing, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.zhang import Study

METRICS = ("AI", "AD_bar", "AG", "I", "D_bar")
LANES = {
    "ground_truth": _zhang.Lane("label", "@method"),
    "predicted": _zhang.Lane("predicted", "@own"),
    "least_probable": _zhang.Lane("least", "@secondary"),
}


@figure("Does it matter which class is explained?", of="zhang", order=20, paper="Zhang et al., Table 2")
def zhang_table_2(study: "Study") -> Drawing | None:
    """None where only the label was explained, which Table 1 shows."""
    values = [value for value in study.table(2) if value.method not in FLOORS]
    if {value.condition for value in values} <= {"ground_truth"}:
        return None
    note = (
        "Each map explains one class, and the same class is scored: the label, the class that the model predicts, or "
        "the one it finds least probable. Dots are ours with 95 % intervals, diamonds the paper's, higher is better. "
        "For the least probable class nearly every change of the image raises the probability, so that AI says "
        f"little.{_zhang.unrun(METRICS, values)}"
    )
    label = "Five fidelity metrics of ten methods for three target classes, ours beside the paper's"
    chart = _zhang.chart(values, list(study.evidence.specs), LANES, label=label)
    return _zhang.drawing("zhang_table_2", note, [chart])
