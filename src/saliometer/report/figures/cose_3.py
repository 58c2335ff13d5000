"""Figure 3 of COSE: ConvNets against Transformers, method by method."""

from typing import Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._cose import INKS
from saliometer.report.figures._violins import height, option, quartiles, rules, shapes
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_evidence import Evidence
from saliometer.studies._cose_paper import FAMILIES, METHODS, OVERALL, TRANSFORMER, table, variants
from saliometer.studies._cose_study import Study

LANES = 5  # of a method: ours and the paper's of either family, and an empty one
NOTE = (
    "COSE in percent, one dot for each data set and model of ours, mode published. Shaded: the distribution of the "
    "paper's settings, made of its Table 1 (25 of ConvNets, 30 of Transformers, each cell as often as it has "
    "variants), with the line from the first to the third quartile and a diamond at the median."
)


@figure("Do Transformers score higher than ConvNets?", of="cose", order=40, paper="Daroya et al., Figure 3")
def cose_3(study: Study) -> Drawing | None:
    e = study.evidence
    ours = {(m, family): _ours(e, m, family) for m in METHODS for family in INKS}
    if not any(ours.values()):
        return None
    theirs = {(m, family): _paper(m, family) for m in METHODS for family in INKS}
    rows = [
        {"method": m, "family": family, "whose": whose, "cose": one}
        for whose, some in (("ours", ours), ("paper", theirs))
        for (m, family), values in some.items()
        for one in values
    ]
    label = f"COSE of {e.few()} by method, and of the paper's 25 and 30 settings"
    chart = Chart(_option(ours, theirs), rows, label, height(len(METHODS), LANES))
    return Drawing(f"{NOTE} Here there are {e.few()}.", [chart])


Points = dict[tuple[str, str], list[float]]


def _ours(e: Evidence, method: str, family: str) -> list[float]:
    found = []
    for model in e.models(family=family):
        try:
            found.append(float(e.of("harmonic", model, method)[0]))
        except MissingError:
            continue
    return found


def _paper(method: str, family: str) -> list[float]:
    return [
        value
        for (data, model, name), value in table().items()
        if name == method and data != OVERALL and FAMILIES[model] == family
        for _ in variants(model)
    ]


def _lane(method: str, family: str, paper: bool) -> int:
    return METHODS.index(method) * LANES + 2 * (family == TRANSFORMER) + paper


def _option(ours: Points, theirs: Points) -> dict[str, Any]:
    series: list[dict[str, Any]] = []
    for family, ink in INKS.items():
        dots = [[round(x, 2), _lane(m, family, False)] for m in METHODS for x in ours[m, family]]
        series.append(
            {
                "type": "scatter", "name": family, "symbolSize": 9, "itemStyle": {"color": ink, "opacity": 0.9},
                "data": dots, "z": 4,
            }
        )  # fmt: skip
        points = {_lane(m, family, True): theirs[m, family] for m in METHODS}
        series += shapes(f"{family}, paper", ink, points)
        hollow = {"color": "@card", "borderColor": ink, "borderWidth": 1.4}
        series.append(
            {
                "type": "scatter", "name": f"{family}, paper", "symbol": "diamond", "symbolSize": 9, "z": 4,
                "itemStyle": hollow, "data": [[round(quartiles(some)[2], 2), lane] for lane, some in points.items()],
            }
        )  # fmt: skip
    series.append(rules([{"xAxis": 50}], "@soft", "dashed"))  # chance
    legend = [{"name": name, "icon": "circle"} for name in INKS]
    legend += [{"name": f"{name}, paper", "icon": "diamond"} for name in INKS]
    return option(METHODS, LANES, series, legend)
