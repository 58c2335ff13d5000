"""The SMERF paper's own numbers: the authors' stored figures, plain CNN on black (smerf.md 7.2 to 7.4).

Their lowest PAFL over complex buckets covers three of five settings and is left out; Grad-CAM's mean there is NaN.
"""

import csv
from functools import cache
from importlib.resources import files

from saliometer.engine.presets import SMERF

SHORT = {spec: name for name, spec in SMERF.items()}  # a method with the paper's parameters -> the paper's name
NAN = float("nan")


@cache
def paper() -> dict[tuple[str, str, str, str], float]:
    """(metric, group, join, method as the paper calls it) -> value."""
    text = files("saliometer.studies").joinpath("data/smerf.csv").read_text(encoding="utf-8")
    return {
        (row["metric"], row["group"], row["join"], row["method"]): float(row["value"])
        for row in csv.DictReader(text.splitlines())
    }


def stored(metric: str, group: str, join: str, method: str) -> float:
    """The paper's value for a method of ours, where it ran with the paper's parameters; else NaN."""
    return paper().get((metric, group, join, SHORT.get(method, "")), NAN)
