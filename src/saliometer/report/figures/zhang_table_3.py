"""Table 3 of the ten-methods study: robustness and complexity."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.zhang import Study

METRICS = ("MS", "AS", "Sparseness", "Complexity", "EC")


@figure("How steady and how simple are the maps?", of="zhang", order=30, paper="Zhang et al., Table 3")
def zhang_table_3(study: "Study") -> Drawing | None:
    values = study.table(3)
    if not values:
        return None
    note = (
        "Means over images with 95 % intervals, beside what the paper prints; an arrow says which way is better. None "
        "of these looks at whether a map is right. The paper's MS and AS of Fake-CAM, 0.96, cannot be: its map never "
        f"changes.{_zhang.unrun(METRICS, values)}"
    )
    lanes = {"ground_truth": _zhang.Lane("ours", "@method")}
    label = "Robustness and complexity of ten methods and the controls, ours beside the paper's"
    chart = _zhang.chart(values, list(study.evidence.specs), lanes, label=label)
    return _zhang.drawing("zhang_table_3", note, [chart], METRICS)
