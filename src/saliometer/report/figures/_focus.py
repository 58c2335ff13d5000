"""A metric of what decides beside that of what plays no part: means over buckets with their spread, and parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saliometer.report.figures import Chart, Drawing
from saliometer.report.figures._panels import Panel, chart
from saliometer.report.figures._smerf import SPREAD, Part, about_paper, series
from saliometer.report.view import View
from saliometer.summary import Scores


@dataclass(frozen=True)
class Pair:
    """Two metrics, and what they say together."""

    primary: str
    secondary: str
    note: str

    def sides(self, view: View) -> list[tuple[str, Scores, str]]:
        """Name, scores, colour."""
        named = ((self.primary, "@primary"), (self.secondary, "@secondary"))
        return [(metric.upper(), view.scores(metric), colour) for metric, colour in named]

    @property
    def names(self) -> str:
        return f"{self.primary.upper()} and {self.secondary.upper()}"


AFL = Pair(
    "pafl",
    "safl",
    "Where the attribution goes, on average over buckets: PAFL is the share on objects that decide and should be high, "
    f"SAFL the share on objects that play no part and should be low; {SPREAD}. They need not add up to 100: some goes "
    "to the background, and SAFL also runs over images in which nothing decides.",
)
IOU = Pair(
    "piou",
    "siou",
    "How well the map's highest pixels, as many as the deciding objects have, cover the objects that decide (PIOU, "
    f"should be high) and those that play no part (SIOU, should be low), on average over buckets; {SPREAD}.",
)


def focus(
    view: View, group: Part, parts: Mapping[Part, Mapping[str, Any]], title: str, told: str, pair: Pair = AFL
) -> Drawing | None:
    """Bars of a group; then dots of parts of it, each with its look."""
    whole = [
        Panel(name, [series(view, scores, group, name, look="bar", colour=colour)], i == 0)
        for i, (name, scores, colour) in enumerate(pair.sides(view))
    ]
    found = [
        chart(view, whole, f"{pair.names} by method, {group.name} reasoning"),
        split(view, parts, f"{pair.names} {told}", title, pair),
    ]
    charts: list[Chart] = [one for one in found if one]
    return Drawing(pair.note + about_paper(view, charts), charts) if charts else None


def split(
    view: View, parts: Mapping[Part, Mapping[str, Any]], told: str, title: str = "", pair: Pair = AFL, row: int = 26
) -> Chart | None:
    """Dots of parts of the buckets."""
    panels = [
        Panel(name, [series(view, scores, part, **{"name": part.name, **look}) for part, look in parts.items()], i == 0)
        for i, (name, scores, _) in enumerate(pair.sides(view))
    ]
    return chart(view, panels, told, title=title, row=row)
