"""PAFL and SAFL by what shows, in the complex settings other than CR2 (Figure 22 of Kim et al., 2022)."""

from collections.abc import Sequence
from typing import Any

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import split
from saliometer.report.figures._marks import COLOURED, STEP
from saliometer.report.figures._smerf import Part, about_paper
from saliometer.report.figures._study import BUCKETS, seen, told
from saliometer.report.words import question
from saliometer.studies._smerf_study import Study

Shown = dict[str, tuple[int, ...]]
LETTER: Shown = {"letter + Box1": (8, 9), "letter + Box2": (5, 6), "letter + both boxes": (11, 12)}
BOTH: Shown = {"A + both boxes": (11,), "B + both boxes": (12,)}
SHOWN: dict[str, Shown] = {
    "complex-cr1": LETTER,
    "complex-cr3": {"A + Box1": (8,), "B + Box1": (9,), **BOTH},
    "complex-cr4": {"A + Box2": (5,), "B + Box2": (6,), **BOTH},
    "complex-fr": {"letter": (2, 3), **LETTER},
}
INKS = {"letter": "@secondary", "Box1": "@primary", "Box2": "@own", "both boxes": "@fail"}  # by what stands last
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
        split(view, _looks(parts), f"PAFL and SAFL of {setting}", f"{setting}: {question(setting, view.run)}", row=34)
        for setting, parts in SETTINGS.items()
    ]
    charts = [chart for chart in drawn if chart]
    said = about_paper(view, charts) and f"{about_paper(view, charts)} {COLOURED}"
    return told(view, Drawing(NOTE + said, charts)) if charts else None


def _looks(parts: Sequence[Part]) -> dict[Part, dict[str, Any]]:
    """The colour says which boxes show, a ring that the letter is B."""
    found = {}
    for place, part in enumerate(parts):
        words = part.name.partition(": ")[2]
        ink, look = INKS[words.rpartition(" + ")[2]], "ring" if words.startswith("B") else "dot"
        shift = round(STEP * (place - (len(parts) - 1) / 2))
        found[part] = {"name": words, "colour": ink, "diamond": ink, "look": look, "shift": shift}
    return found
