"""The SMERF paper's own numbers: the authors' stored figures (smerf.md 7.2 to 7.5) and toys (5.4, 5.6).

A condition is a part of the study, `toy`, or `one map`. Their lowest PAFL over complex buckets on black covers three of
five settings and is left out; Grad-CAM's mean there, and on AlexNet, is NaN.
"""

import csv
from functools import cache
from importlib.resources import files

from saliometer.engine.presets import SMERF

SHORT = {spec: name for name, spec in SMERF.items()}  # a method with the paper's parameters -> the paper's name
NAN = float("nan")


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
