"""Table 1 of the ten-methods study: fidelity for the label."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.zhang import Study

METRICS = ("AI", "AD_bar", "AG", "I", "D_bar", "Monotonicity")


@figure("Do the maps mark what the model uses?", of="zhang", order=10, paper="Zhang et al., Table 1")
def zhang_table_1(study: "Study") -> Drawing | None:
    values = study.table(1)
    if not values:
        return None
    note = (
        "Six measures of fidelity for the labelled class, higher is better: means over images with 95 % intervals, "
        "beside what the paper prints for another network and other images. A method should lie above the controls, "
        "which never see the model. Fake-CAM, which marks all but one pixel, is a control as well."
        f"{_zhang.unrun(METRICS, values)}"
    )
    lanes = {"ground_truth": _zhang.Lane("ours", "@method")}
    label = "Six fidelity metrics of ten methods and the controls, ours beside the paper's"
    chart = _zhang.chart(values, list(study.evidence.specs), lanes, label=label)
    return _zhang.drawing("zhang_table_1", note, [chart], METRICS)
