"""PAFL and SAFL on simple reasoning, and with and without another object (Figure 6a of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import AFL, Pair, focus
from saliometer.report.figures._smerf import SIMPLE, Part
from saliometer.report.view import View

PARTS: dict[Part, dict[str, Any]] = {
    Part("simple-fr: letter", "simple-fr", (8, 9, 11, 12)): {"shift": -5},
    Part("simple-fr: no letter", "simple-fr", (7, 10)): {"shift": -5, "look": "ring"},
    Part("simple-nr: Box1", "simple-nr", (8, 9, 11, 12)): {"shift": 5, "colour": "@own"},
    Part("simple-nr: no Box1", "simple-nr", (2, 3, 5, 6)): {"shift": 5, "colour": "@own", "look": "ring"},
}


@figure("Where the attribution goes: simple reasoning", of="bench", order=30, paper="SMERF Figure 6a")
def smerf_6a(view: View) -> Drawing | None:
    return simple(view)


def simple(view: View, pair: Pair = AFL) -> Drawing | None:
    title = "With and without an object that plays no part"
    return focus(view, SIMPLE, PARTS, title, "where another object shows, and where not", pair)
