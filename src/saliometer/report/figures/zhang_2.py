"""Figure 2 of the ten-methods study: how each score follows the model's confidence."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, _zhang, figure

if TYPE_CHECKING:
    from saliometer.studies.zhang import Study


@figure("Do the scores follow the model's confidence?", of="zhang", order=60, paper="Zhang et al., Figure 2")
def zhang_2(study: "Study") -> Drawing | None:
    values = study.confidence()
    if not values:
        return None
    note = (
        "Spearman's correlation over images of each score with the probability of the labelled class, with 95 % "
        "intervals: 1 where the score rises with the model's confidence, -1 where it falls, 0 where it does not care. "
        "The paper shows this as scattered points and prints no numbers. AD and D are scores of which less is better."
    )
    lanes = {"ground_truth": _zhang.Lane("ours", "@method")}
    label = "Rank correlation of four scores with the model's confidence, by method"
    chart = _zhang.chart(values, list(study.evidence.specs), lanes, label=label, across=4, bounds=(-1, 1))
    return _zhang.drawing("zhang_2", note, [chart])
