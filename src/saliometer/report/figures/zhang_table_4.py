"""Table 4 of the ten-methods study: fidelity on transformed images."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.zhang import Study

METRICS = ("AI", "AD_bar", "AG", "I", "D_bar")
NAMES = {"mixup": "MixUp", "resize": "Resize", "rotation": "Rotation", "crop": "Crop"}


@figure("Do the scores stay when the images change?", of="zhang", order=40, paper="Zhang et al., Table 4")
def zhang_table_4(study: "Study") -> Drawing | None:
    values, methods = study.table(4), list(study.evidence.specs)
    if not values:
        return None
    charts, lost = [], []
    for transform, name in NAMES.items():
        some = [value for value in values if value.condition == transform]
        if some:
            lanes = {transform: _zhang.Lane("ours", "@method")}
            label = f"Five fidelity metrics of ten methods under {name}, ours beside the paper's"
            charts.append(_zhang.chart(some, methods, lanes, label=label, title=name, across=5))
        else:
            lost.append(name)
    note = (
        "The same scores on images that were mixed with another one, shrunk and enlarged again, turned, or cut: means "
        "over the strengths of each transform, with 95 % intervals, beside what the paper prints. Higher is better. "
        "The paper's AD-bar and AG of Fake-CAM under Resize are swapped."
    )
    note += f" Not run: {', '.join(lost)}." if lost else ""
    return _zhang.drawing("zhang_table_4", note, charts)
