"""The SMERF paper's own numbers, the authors' stored figures (smerf.md 7.2 to 7.5) and toys, and its names for methods.

A condition is a part of the study, `toy`, or `one map`. Their lowest PAFL over complex buckets on black covers three of
five settings and is left out; Grad-CAM's mean there, and on AlexNet, is NaN.
"""

import csv
from collections.abc import Collection
from functools import cache
from importlib.resources import files

from saliometer.engine.presets import SMERF

FEWER = {count: f"deep_shap(count={count})" for count in (100, 50, 10)}  # references, where 1000 take too long
SHORT = {spec: name for name, spec in SMERF.items()}  # a method with the paper's parameters -> the paper's name
SHORT |= dict.fromkeys(FEWER.values(), "D-SHAP")
NAN = float("nan")


def with_references(count: int) -> dict[str, str]:
    """The paper's methods, D-SHAP with so many references; a number that `SHORT` knows."""
    return SMERF | ({"D-SHAP": FEWER[count]} if count in FEWER else {})


def spec_of(name: str, methods: Collection[str]) -> str:
    """Which of a run's methods the paper's name stands for: the one with its parameters, or with fewer references."""
    return next((spec for spec, short in SHORT.items() if short == name and spec in methods), SMERF[name])


@cache
def paper(condition: str = "black") -> dict[tuple[str, str, str, str], float]:
    """(metric, group, join, method as the paper calls it) -> value."""
    text = files("saliometer.studies").joinpath("data/smerf.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], row["group"], row["join"], row["method"]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
        if row["condition"] == condition
    }


def stored(metric: str, group: str, join: str, method: str, condition: str = "black") -> float:
    """The paper's value for a method of ours, where it ran with the paper's parameters; else NaN."""
    return paper(condition).get((metric, group, join, SHORT.get(method, "")), NAN)
