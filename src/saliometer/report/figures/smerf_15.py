"""Overlap when another number of pixels is taken (Figure 15 of Kim et al., 2022)."""

import math
import re

import pyarrow as pa
import pyarrow.compute as pc

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._lines import Line, chart
from saliometer.report.figures._smerf import label
from saliometer.report.figures._study import TOYS
from saliometer.report.words import kind, listed
from saliometer.studies._smerf_paper import SHORT, paper
from saliometer.studies._smerf_study import Study
from saliometer.studies._smerf_sweep import BUCKET, SETTING
from saliometer.summary import Scores

FIRST = ("clean", "clean_positive", "authors")  # the authors' threshold has steps of its own
NOTE = (
    f"Mean PIOU of {SETTING}, bucket {BUCKET} (B and Box1, where the B decides), when the K highest pixels are taken "
    "instead of as many as the B's box has: the same maps, other scores."
)
ONE_MAP = " Hollow diamonds are the paper's, of a single map of IG by the definition authors."


@figure("Overlap hangs on the number of pixels", of="smerf", order=150, paper="SMERF Figure 15", group=TOYS)
def smerf_15(study: Study) -> Drawing | None:
    if study.sweep is None or not len(study.sweep):
        return None
    definitions = study.sweep["definition"].unique().to_pylist()
    definition = next((one for one in FIRST if one in definitions), definitions[0])
    curves = _curves(study.sweep, definition)
    known = {m: curve for m, curve in curves.items() if m in SHORT or kind(m) == "oracle"} or curves
    if not known:
        return None
    lines = [Line(label(method), curve, _paper(method)) for method, curve in known.items()]
    drawn = chart(lines, "K, pixels taken", "PIOU", f"PIOU against the number of pixels taken, {len(lines)} methods")
    one_map = ONE_MAP if any(line.paper for line in lines) else ""
    return Drawing(f"{NOTE} {_leaders(known)} By the definition {definition}.{one_map}", [drawn])


def _curves(rows: pa.Table, definition: str) -> dict[str, dict[float, float]]:
    """method -> K -> mean, the highest first at the middle K."""
    found: dict[str, dict[float, float]] = {}
    for condition in rows.filter(pc.field("metric") == "piou")["condition"].unique().to_pylist():
        count = re.fullmatch(r"k\((\d+)\)", condition)
        if count:
            scores = Scores(rows, "piou", definition, resamples=1, condition=condition)
            for place, method in enumerate(scores.methods):
                found.setdefault(method, {})[int(count[1])] = float(scores.means[:, place].mean())
    return dict(sorted(found.items(), key=lambda item: -sorted(item[1].items())[len(item[1]) // 2][1]))


def _leaders(curves: dict[str, dict[float, float]]) -> str:
    """Whether the choice of K would choose another method."""
    real = {method: curve for method, curve in curves.items() if kind(method) != "oracle"}
    best: dict[float, tuple[float, str]] = {}
    for method, curve in real.items():
        for count, value in curve.items():
            if not math.isnan(value):
                best[count] = max(best.get(count, (value, method)), (value, method))
    first = list(dict.fromkeys(best[count][1] for count in sorted(best)))
    if len(first) < 2:
        return f"{first[0]} is first at every K." if first else ""
    return f"Which method is first depends on K: {', '.join(listed(first))}."


def _paper(method: str) -> dict[float, float]:
    stored = paper("one map").items()
    return {float(join.removeprefix("k = ")): v for (_, _, join, name), v in stored if SHORT.get(method) == name}
