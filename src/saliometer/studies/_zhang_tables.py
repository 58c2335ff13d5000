"""Tables 1 to 4 of the ten-methods study, ours beside the paper's."""

import csv
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from saliometer.judgement import FLOORS, interval
from saliometer.studies._claims import Draws, MissingError
from saliometer.studies._zhang_evidence import FAKE, METHODS, TRANSFORMS, Evidence

FIDELITY = ("AI", "AD_bar", "AG", "I", "D_bar")
LABEL = {"ground_truth": "label"}
SECOND = "mixup_second"  # blends, of which the other picture's class is explained
TABLES = {  # number -> title, the paper's conditions with our targets, columns
    1: ("Fidelity, explained and scored for the label", LABEL, (*FIDELITY, "Monotonicity")),
    2: ("Three target classes", {**LABEL, "predicted": "predicted", "least_probable": "least"}, FIDELITY),
    3: ("Robustness and complexity", LABEL, ("MS", "AS", "Sparseness", "Complexity", "EC")),
    4: ("Transformed images, means over the variations", {name: name for name in TRANSFORMS}, FIDELITY),
}


@dataclass(frozen=True)
class Value:
    """One number as the paper prints it: ours with its 95 % interval, and the paper's where it has one."""

    table: str
    condition: str  # as the paper calls it
    method: str
    metric: str
    ours: float
    low: float
    high: float
    paper: float | None


@cache
def paper() -> dict[tuple[int, str, str, str], float]:
    """(table, condition, method, metric) -> value as printed."""
    text = files("saliometer.studies").joinpath("data/zhang.csv").read_text(encoding="utf-8")
    return {
        (int(row["table"]), row["condition"], row["method"], row["metric"]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }


def values(evidence: Evidence, number: int) -> list[Value]:
    """A table's numbers, as far as they were run; also of the controls, which the paper does not have."""
    _, conditions, metrics = TABLES[number]
    cells = [(c, method, metric) for c in conditions for metric in metrics for method in (*METHODS, *FLOORS)]
    found = [_value(evidence, number, *cell) for cell in cells]
    return [value for value in found if value]


def _value(evidence: Evidence, number: int, condition: str, method: str, metric: str) -> Value | None:
    try:
        ours = _cell(evidence, number, condition, method, metric)
    except MissingError:
        return None
    found = interval(float(ours[0]), ours[1:], 2)
    theirs = paper().get((number, condition, method, metric))
    return Value(f"Table {number}", condition, method, metric, found.value, found.low, found.high, theirs)


def _cell(evidence: Evidence, table: int, condition: str, method: str, metric: str) -> Draws:
    if table == 4:
        return evidence.under(metric, method, condition)[0]
    return evidence.of(metric, method, TABLES[table][1][condition])


def markdown(evidence: Evidence) -> str:
    """All tables: ours with half of the 95 % interval, the paper's value after the stroke; then each variation."""
    parts = []
    for number, (title, conditions, metrics) in TABLES.items():
        ours = {(value.condition, value.method, value.metric): value for value in values(evidence, number)}
        for condition in conditions:
            if any((condition, method, metric) in ours for method in METHODS for metric in metrics):
                lines = [f"**Table {number}**, {title.lower()}: {condition} (ours ± / paper)", ""]
                lines += ["| method | " + " | ".join(metrics) + " |", "|---|" + "---:|" * len(metrics)]
                for method in METHODS:
                    theirs = [paper().get((number, condition, method, metric)) for metric in metrics]
                    cells = [_shown(ours.get((condition, method, m)), p) for m, p in zip(metrics, theirs, strict=True)]
                    lines.append(f"| {method} | " + " | ".join(cells) + " |")
                parts.append("\n".join(lines))
    for name in (*TRANSFORMS, SECOND):
        with suppress(MissingError):
            parts.append(_by_variation(evidence, name))
    return "\n\n".join(parts)


def _by_variation(evidence: Evidence, transform: str) -> str:
    """What Table 4 averages, and the confidence that all of it follows."""
    variations, metrics = evidence.variations(transform), TABLES[4][2]
    whose = "mixup, explained and scored for the second class" if transform == SECOND else transform
    lines = [f"**Table 4**, each variation of {whose}: {' / '.join(metrics)} (ours)", ""]
    lines += ["| method | " + " | ".join(variations) + " |", "|---|" + "---:|" * len(variations)]
    rows = {"mean p of the class": [_confidence(evidence, condition) for condition in variations]}
    for method in METHODS:
        rows[method] = [" / ".join(_plain(evidence, m, method, condition) for m in metrics) for condition in variations]
    return "\n".join([*lines, *(f"| {name} | " + " | ".join(cells) + " |" for name, cells in rows.items())])


def _confidence(evidence: Evidence, condition: str) -> str:
    with suppress(MissingError):
        column = evidence.column("probability", condition=condition)
        return f"{column.means[evidence.place(column, FAKE)]:.2f}"  # the same for every method that has a map
    return "-"


def _plain(evidence: Evidence, metric: str, method: str, condition: str) -> str:
    with suppress(MissingError):
        return f"{evidence.of(metric, method, condition=condition)[0]:.1f}"
    return "-"


def _shown(ours: Value | None, theirs: float | None) -> str:
    beside = "-" if theirs is None else f"{theirs:g}"
    if ours is None:
        return f"- / {beside}"
    half = max(ours.high - ours.ours, ours.ours - ours.low)
    digits = 0 if ours.metric == "EC" else 2 if ours.metric in ("MS", "AS", "Complexity", "Monotonicity") else 1
    return f"{ours.ours:.{digits}f} ±{half:.{digits}f} / {beside}"
