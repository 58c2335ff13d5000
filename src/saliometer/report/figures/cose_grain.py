"""Better COSE, or smoother maps: methods beside noise as fine as their maps."""

from collections.abc import Iterable
from itertools import cycle
from typing import Any

import numpy as np

from saliometer.report.figures import Chart, Drawing, _zhang, figure
from saliometer.report.figures._cose import INKS, MORE_INKS, value
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_evidence import MODES, Evidence, estimated
from saliometer.studies._cose_grain import Beside, answer, every, noises
from saliometer.studies._cose_paper import METHODS
from saliometer.studies._cose_study import Study

NOTE = (
    "How fine a map is (its grain: the distance at which its autocorrelation falls to a half), and its COSE, mode "
    "default. The lines are noise under Gaussians of several widths, drawn anew for every image and read as a "
    "method's maps are: what smoothness alone is worth on a model's pairs. A method tells more the further it lies "
    "above the line. "
)

MANY = 6  # models, of which more are drawn by family
DASHES = "path://M0,4h9v2h-9zM14,4h9v2h-9z"  # in the legend


@figure("Better COSE, or smoother maps?", of="cose", order=45)
def cose_grain(study: Study) -> Drawing | None:
    e = study.evidence.by(MODES[1])
    found = every(e)
    if not found:
        return None
    rows = [
        {
            "data": one.model.of, "model": one.model.label, "family": one.model.family, "method": one.method,
            "grain": one.grain, "cose": one.cose[0], "noise": one.noise[0], "difference": one.excess[0],
        }
        for one in found
    ]  # fmt: skip
    try:
        said = " ".join(answer(e).sentences())
    except MissingError as why:
        said = f"Families cannot be compared: {why}."
    return Drawing(
        NOTE + said, [Chart(_option(e, found), rows, "COSE by grain, methods and noise", 440), _excess(found)]
    )


def _option(e: Evidence, found: list[Beside]) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for model in dict.fromkeys((one.model.data, one.model.label) for one in found):
        trained = next(one.model for one in found if (one.model.data, one.model.label) == model)
        line = [[round(grain, 3), round(_cose(e, trained, name), 2)] for grain, name in noises(e, trained)]
        ink = INKS.get(trained.family, "@control")
        series.append(
            {
                "type": "line", "name": f"noise, {trained.family}", "data": line, "symbol": "none",
                "lineStyle": {"color": ink, "type": "dashed", "width": 1.2}, "itemStyle": {"color": ink},
            }
        )  # fmt: skip
    for family, ink in INKS.items():
        dots = [
            {
                "value": [round(one.grain, 3), round(float(one.cose[0]), 2)],
                "name": f"{one.method}, {one.model.label}",
                "label": {"show": True, "formatter": one.method, "position": "right", "fontSize": 10, "color": ink},
            }
            for one in found
            if one.model.family == family
        ]
        series.append(
            {
                "type": "scatter",
                "name": family,
                "symbolSize": 9,
                "itemStyle": {"color": ink},
                "data": dots,
                "z": 4,
                "labelLayout": {"hideOverlap": True},
            }
        )
    legend = [{"name": family, "icon": "circle"} for family in INKS]
    legend += [{"name": f"noise, {family}", "icon": DASHES} for family in INKS]
    return {
        "tooltip": {"trigger": "item", "formatter": "{b}: {c}"},
        "legend": {"top": 0, "data": legend},
        "grid": {"left": 50, "right": 90, "top": 34, "bottom": 46},
        "xAxis": {"type": "value", "name": "grain, pixels", "nameLocation": "middle", "nameGap": 28, "min": 0},
        "yAxis": {"type": "value", "name": "COSE, percent", "nameLocation": "middle", "nameGap": 34, "min": 0},
        "series": series,
    }


def _cose(e: Evidence, model: Any, name: str) -> float:
    try:
        return float(e.of("harmonic", model, name)[0])
    except MissingError:
        return 0.0  # so fine that its consistency is not above 0


def _inks(groups: Iterable[list[Beside]]) -> list[str]:
    """The first of a family has the family's own, as above; the others what is left."""
    own, rest, found = dict(INKS), cycle([ink for ink in MORE_INKS if ink not in INKS.values()]), []
    for some in groups:
        found.append(own.pop(some[0].model.family, "") or next(rest))
    return found


def _excess(found: list[Beside]) -> Chart:
    """COSE less that of the noise, by method and model; by family where models are many."""
    groups: dict[str, list[Beside]] = {}
    several = len({(one.model.data, one.model.label) for one in found}) > MANY
    for one in found:
        groups.setdefault(one.model.family if several else f"{one.model.of}, {one.model.label}", []).append(one)
    lanes = {name: _zhang.Lane(name, ink) for name, ink in zip(groups, _inks(groups.values()), strict=True)}
    values = []
    for name, some in groups.items():
        for method in dict.fromkeys(one.method for one in some):
            mean = np.mean([one.excess for one in some if one.method == method], 0)
            values.append(value(method, "difference", name, estimated(mean)))
    kept = [one for one in values if one]
    ends = [abs(end) for one in kept for end in (one.ours, one.low, one.high) if not np.isnan(end)]
    most = 10.0 * float(np.ceil(max(ends) / 10))
    return _zhang.chart(
        kept, [m for m in METHODS if any(one.method == m for one in kept)], lanes, across=1, bounds=(-most, most),
        label="COSE above noise of the same grain, by method and model", title="COSE minus that of noise as fine",
    )  # fmt: skip
