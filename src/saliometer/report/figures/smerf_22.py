"""PAFL and SAFL by what shows, in the complex settings other than CR2 (Figure 22 of Kim et al., 2022)."""

from typing import Any

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import split
from saliometer.report.figures._smerf import Part, about_paper
from saliometer.report.figures._study import BUCKETS, seen, told
from saliometer.report.words import question
from saliometer.studies._smerf_study import Study

Shown = dict[str, tuple[int, ...]]
LOOKS: list[dict[str, Any]] = [{"colour": colour} for colour in ("@primary", "@own", "@fail", "@secondary")]
LETTER: Shown = {"letter + Box1": (8, 9), "letter + Box2": (5, 6), "letter + both boxes": (11, 12)}
BOXES: Shown = {"A + both boxes": (11,), "B + both boxes": (12,)}
SHOWN: dict[str, Shown] = {
    "complex-cr1": LETTER,
    "complex-cr3": {"A + Box1": (8,), "B + Box1": (9,), **BOXES},
    "complex-cr4": {"A + Box2": (5,), "B + Box2": (6,), **BOXES},
    "complex-fr": {"letter": (2, 3), **LETTER},
}
SETTINGS = {s: [Part(f"{s}: {words}", s, buckets) for words, buckets in some.items()] for s, some in SHOWN.items()}
NOTE = (
    "As for complex-cr2 in Figure 8a: one model each, and kinds of image by what they show. Where nothing decides in "
    "an image there is no PAFL. The paper's panel of complex-cr1 was drawn from robust models and is not shown."
)


@figure("One model, several kinds of image", of="smerf", order=220, paper="SMERF Figure 22", group=BUCKETS)
def smerf_22(study: Study) -> Drawing | None:
    view = seen(study, "black")
    if not view:
        return None
    drawn = [
        split(view, _looks(parts), f"PAFL and SAFL of {setting}", f"{setting}: {question(setting, view.run)}")
        for setting, parts in SETTINGS.items()
    ]
    charts = [chart for chart in drawn if chart]
    return told(view, Drawing(NOTE + about_paper(view, charts), charts)) if charts else None


def _looks(parts: list[Part]) -> dict[Part, dict[str, Any]]:
    first = -3 * (len(parts) - 1)
    return {part: {**look, "shift": first + 6 * i} for i, (part, look) in enumerate(zip(parts, LOOKS, strict=False))}
