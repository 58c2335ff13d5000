"""PAFL and SAFL by the number of objects that show (Figure 6b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import Part, Series, about_paper, series
from saliometer.report.view import View

SHOWN = {  # setting -> the buckets in which something decides, by the number of objects
    "simple-fr": {"1 object": (7,), "2 objects": (8, 9, 10), "3 objects": (11, 12)},
    "simple-nr": {"1 object": (2, 3), "2 objects": (5, 6, 8, 9), "3 objects": (11, 12)},
}
NOTE = (
    "The digit is the number of objects in the image. One of them decides and the model is the same, so a faithful "
    "map's PAFL would not change with the number. With one object there is no SAFL."
)


@figure("The more objects, the less on what decides", of="bench", order=40, paper="SMERF Figure 6b")
def smerf_6b(view: View) -> Drawing | None:
    panels = [Panel(setting, _series(view, setting), half=True) for setting in SHOWN]
    drawn = chart(view, panels, "PAFL and SAFL with one, two and three objects in the image", row=28)
    return Drawing(NOTE + about_paper(view, [drawn]), [drawn]) if drawn else None


def _series(view: View, setting: str) -> list[Series]:
    parts = {words[0]: Part(f"{setting}: {words}", setting, buckets) for words, buckets in SHOWN[setting].items()}
    return [
        series(view, scores, part, f"{name}, {words(digit)}", look=digit, colour=colour, shift=shift)
        for name, scores, colour, shift in (
            ("PAFL", view.primary, "@primary", -6),
            ("SAFL", view.secondary, "@secondary", 6),
        )
        for digit, part in parts.items()
    ]


def words(digit: str) -> str:
    return f"{digit} object{'s' if digit != '1' else ''}"
