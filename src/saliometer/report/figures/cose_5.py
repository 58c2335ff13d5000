"""Figure 5 of COSE: checkpoints by accuracy, and how alike their maps are to the final model's."""

from typing import Any

from saliometer.report.figures import Chart, Drawing, _zhang, figure
from saliometer.report.figures._cose import INKS
from saliometer.studies._cose_accuracy import Followed, followed
from saliometer.studies._cose_study import Study

HIGH, HEAD, BELOW = 190, 40, 30  # pixels of a panel, over and under it
NOTE = (
    "Each dot is a checkpoint of a training, or the untrained copy: its test accuracy, and the mean similarity of "
    "its maps to those of the final model, mode published. r is Pearson's correlation over all dots, p its chance. "
    "The last checkpoint is the model itself and left out; with it, as a free point at 1: {last}."
)


@figure("Do maps come nearer as the training goes on?", of="cose", order=60, paper="Daroya et al., Figure 5")
def cose_5(study: Study) -> Drawing | None:
    found = followed(study.evidence)
    if not found:
        return None
    rows = [
        {
            "method": one.method, "data": point.model.of, "model": point.model.label, "checkpoint": point.checkpoint,
            "accuracy": point.accuracy, "similarity": point.similarity, "r": one.r, "p": one.p,
        }
        for one in found
        for point in one.each
    ]  # fmt: skip
    last = ", ".join(f"{one.method} {one}" for one in followed(study.evidence, last=True))
    label = "Accuracy and similarity of checkpoints: " + ", ".join(f"{one.method} {one}" for one in found)
    height = -(-len(found) // 4) * (HEAD + HIGH + BELOW) + 30
    return _zhang.drawing("cose_5", NOTE.format(last=last), [Chart(_option(found), rows, label, height)])


def _option(found: list[Followed]) -> dict[str, Any]:
    wide, narrow = (_layout(found, across) for across in (4, 2))
    series = []
    for place, one in enumerate(found):
        for family, ink in INKS.items():
            dots = [
                {
                    "value": [round(100 * point.accuracy, 1), round(point.similarity, 3)],
                    "name": f"{point.model.label}, {point.checkpoint}",
                }
                for point in one.each
                if point.model.family == family
            ]
            series.append(
                {
                    "type": "scatter", "name": family, "symbolSize": 6, "itemStyle": {"color": ink, "opacity": 0.75},
                    "xAxisIndex": place, "yAxisIndex": place, "data": dots,
                }
            )  # fmt: skip
    return {
        "tooltip": {"trigger": "item", "formatter": "{b}: {c}"},
        "legend": {"top": 0, "data": list(INKS)},
        **wide,
        "xAxis": [{"type": "value", "min": 0, "max": 100, "interval": 50, "gridIndex": i} for i in range(len(found))],
        "yAxis": [
            {"type": "value", "min": 0 if min(p.similarity for p in one.each) >= 0 else -1, "max": 1, "gridIndex": i}
            for i, one in enumerate(found)
        ],
        "series": series,
        "media": [{"query": {"maxWidth": 560}, "option": narrow}, {"option": wide}],
    }


def _layout(found: list[Followed], across: int) -> dict[str, Any]:
    pitch, edge = 99 / across, 4 if across > 2 else 9
    high = HIGH if across > 2 else HIGH // 2
    step = HEAD + high + BELOW
    places = [(place % across, place // across) for place in range(len(found))]
    grids = [
        {
            "left": f"{x * pitch + edge:.2f}%",
            "width": f"{pitch - edge - 3:.2f}%",
            "top": 26 + HEAD + y * step,
            "height": high,
        }
        for x, y in places
    ]
    size = 12 if across > 2 else 10
    titles = [
        {
            "text": f"{one.method}\n{one}", "left": f"{x * pitch + edge:.2f}%", "top": 24 + y * step,
            "textStyle": {"fontSize": size, "lineHeight": size + 3},
        }
        for one, (x, y) in zip(found, places, strict=True)
    ]  # fmt: skip
    return {"grid": grids, "title": titles}
