"""PAFL and SAFL by the number of objects that show (Figure 6b of Kim et al., 2022)."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._focus import AFL, Pair
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import Part, Series, about_paper, series
from saliometer.report.view import View

SHOWN = {  # setting -> the buckets in which something decides, by the number of objects
    "simple-fr": {"1 object": (7,), "2 objects": (8, 9, 10), "3 objects": (11, 12)},
    "simple-nr": {"1 object": (2, 3), "2 objects": (5, 6, 8, 9), "3 objects": (11, 12)},
}


@figure("The more objects, the less on what decides", of="bench", order=40, paper="SMERF Figure 6b")
def smerf_6b(view: View) -> Drawing | None:
    return by_number(view)


def by_number(view: View, pair: Pair = AFL) -> Drawing | None:
    note = (
        "The digit is the number of objects in the image. One of them decides and the model is the same, so a faithful "
        f"map's {pair.primary.upper()} would not change with the number. With one object there is no "
        f"{pair.secondary.upper()}."
    )
    panels = [Panel(setting, _series(view, setting, pair), half=True) for setting in SHOWN]
    drawn = chart(view, panels, f"{pair.names} with one, two and three objects in the image", row=28)
    return Drawing(note + about_paper(view, [drawn]), [drawn]) if drawn else None


def _series(view: View, setting: str, pair: Pair) -> list[Series]:
    parts = {words[0]: Part(f"{setting}: {words}", setting, buckets) for words, buckets in SHOWN[setting].items()}
    return [
        series(view, scores, part, f"{name}, {counted(digit)}", look=digit, colour=colour, shift=shift)
        for (name, scores, colour), shift in zip(pair.sides(view), (-6, 6), strict=True)
        for digit, part in parts.items()
    ]


def counted(digit: str) -> str:
    return f"{digit} object{'s' if digit != '1' else ''}"
