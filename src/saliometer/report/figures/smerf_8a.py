"""PAFL and SAFL on complex reasoning, and by what decides in CR2 (Figure 8a of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import AFL, Pair, focus
from saliometer.report.figures._smerf import COMPLEX, Part
from saliometer.report.view import View

PARTS: dict[Part, dict[str, Any]] = {
    Part("complex-cr2: Box1", "complex-cr2", (8, 9)): {"shift": -6},
    Part("complex-cr2: Box2", "complex-cr2", (5, 6)): {"colour": "@own"},
    Part("complex-cr2: both boxes", "complex-cr2", (11, 12)): {"shift": 6, "colour": "@fail"},
}


@figure("Where the attribution goes: complex reasoning", of="bench", order=60, paper="SMERF Figure 8a")
def smerf_8a(view: View) -> Drawing | None:
    return complex_(view)


def complex_(view: View, pair: Pair = AFL) -> Drawing | None:
    title = "One model, three kinds of image: a letter with Box1, with Box2, with both"
    return focus(view, COMPLEX, PARTS, title, "of complex-cr2 by the boxes that show beside a letter", pair)
