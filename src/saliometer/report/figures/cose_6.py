"""Figure 6 of COSE: how consistent each method is."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._cose import INKS
from saliometer.report.figures._violins import height, option, quartiles, shapes, violin
from saliometer.studies._cose_evidence import MODES, Evidence
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_study import Study

ALL = "all models"
LANES = {ALL: "@ink"} | INKS
NOTE = (
    "Consistency: the mean similarity of maps where a changed image keeps its prediction, in percent; in both modes. "
    "Shaded: its distribution over images and models, with a line from the first to the third quartile; fewer than "
    "five values are small dots. Large dots: the mean over all such pairs of a model, then over models. The paper "
    "shows distributions, too, of samples that it does not name, and prints no numbers: GradCAM first, then "
    "GradCAM++ and BlurIG."
)
Points = Mapping[tuple[str, str], Sequence[float]]  # method, lane -> an image's consistency each


@figure("Which maps stay when the prediction stays?", of="cose", order=70, paper="Daroya et al., Figure 6")
def cose_6(study: Study) -> Drawing | None:
    charts = [chart for mode in MODES if (chart := _chart(study.evidence.by(mode)))]
    return Drawing(f"{NOTE} Here there are {study.evidence.few()}.", charts) if charts else None


def _chart(e: Evidence) -> Chart | None:
    models = {lane: e.models(family="" if lane == ALL else lane) for lane in LANES}
    every = {(m, lane): e.by_image("consistency", some, m) for m in METHODS for lane, some in models.items()}
    points = {where: some for where, some in every.items() if some}
    if not points:
        return None
    rows = []
    for (method, lane), some in points.items():
        mean, (low, first, median, third, high) = e.estimate("consistency", models[lane], method), quartiles(some)
        rows.append(
            {
                "method": method, "models": lane, "mode": e.mode, "values": len(some), "mean": mean.value,
                "mean_low": mean.low, "mean_high": mean.high, "lower_whisker": low, "first_quartile": first,
                "median": median, "third_quartile": third, "upper_whisker": high,
            }
        )  # fmt: skip
    label = f"Distribution and mean of consistency by method, mode {e.mode}"
    return Chart(_option(points, rows), rows, label, height(len(METHODS), len(LANES) + 1), f"Mode {e.mode}")


def _option(points: Points, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for lane, ink in LANES.items():
        mine = {_lane(method, lane): some for (method, of), some in points.items() if of == lane}
        means = [[round(row["mean"], 2), _lane(row["method"], lane)] for row in rows if row["models"] == lane]
        few = [[round(x, 2), at] for at, some in mine.items() if not violin(some, at) for x in some]
        series += [
            *shapes(lane, ink, mine),
            {"type": "scatter", "name": lane, "symbolSize": 4, "itemStyle": {"color": ink}, "data": few},
            {"type": "scatter", "name": lane, "symbolSize": 9, "itemStyle": {"color": ink}, "data": means, "z": 4},
        ]
    lowest = min(min(some) for some in points.values())
    return option(METHODS, len(LANES) + 1, series, list(LANES), min(0, 10 * math.floor(lowest / 10)))


def _lane(method: str, lane: str) -> int:
    return METHODS.index(method) * (len(LANES) + 1) + list(LANES).index(lane)
