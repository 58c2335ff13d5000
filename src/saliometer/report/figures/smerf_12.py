"""The lowest bucket's PAFL with photographs behind the objects, against black (Figure 12 of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._marks import conditions, marked
from saliometer.report.figures._smerf import COMPLEX, SIMPLE
from saliometer.report.figures._study import seen
from saliometer.studies._smerf_study import Study

NOTE = (
    "PAFL in each method's worst bucket where photographs lie behind the objects, and where it is black; complex is "
    "all five settings. The paper's complex curve for black covers three of them and is not shown; its values for "
    "complex reasoning on photographs are all about 1."
)


@figure("The worst bucket: photographs behind the objects", of="smerf", order=130, paper="SMERF Figure 12")
def smerf_12(study: Study) -> Drawing | None:
    natural, black = seen(study, "natural"), seen(study, "black")
    if not natural or not black:
        return None
    views = {"photographs": natural, "black": black}
    panels = {f"PAFL, {part.name}": conditions(views, "pafl", part) for part in (SIMPLE, COMPLEX)}
    return marked(panels, NOTE, "PAFL in the lowest bucket by method, photographs against black", joins=("min",))
