"""PAFL beside SAFL: means over buckets with their spread, and parts of the buckets."""

from collections.abc import Mapping
from typing import Any

from saliometer.report.figures import Chart, Drawing
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import SPREAD, Part, about_paper, series
from saliometer.report.view import View

NOTE = (
    "Where the attribution goes, on average over buckets: PAFL is the share on objects that decide and should be high, "
    f"SAFL the share on objects that play no part and should be low; {SPREAD}. They need not add up to 100: some goes "
    "to the background, and SAFL also runs over images in which nothing decides."
)


def focus(view: View, group: Part, parts: Mapping[Part, Mapping[str, Any]], title: str, told: str) -> Drawing | None:
    """Bars of a group; then dots of parts of it, each with its look."""
    sides = (("PAFL", view.primary, "@primary"), ("SAFL", view.secondary, "@secondary"))
    whole = [
        Panel(name, [series(view, scores, group, name, look="bar", colour=colour)], name == "PAFL")
        for name, scores, colour in sides
    ]
    split = [
        Panel(name, [series(view, scores, part, part.name, **look) for part, look in parts.items()], name == "PAFL")
        for name, scores, _ in sides
    ]
    found = [
        chart(view, whole, f"PAFL and SAFL by method, {group.name} reasoning"),
        chart(view, split, told, title=title, row=26),
    ]
    charts: list[Chart] = [one for one in found if one]
    return Drawing(NOTE + about_paper(view, charts), charts) if charts else None
