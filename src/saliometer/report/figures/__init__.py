"""Figures, one file each: what a run's rows say in, a drawing out; a file is found by being there.

A chart is an option of ECharts in plain JSON. Two things that JSON lacks have names, which `scripts/charts.js` knows: a
colour is '@' and a word of the page's style ('@primary'), so that it follows light and dark; `renderItem` is the name
of a function there ('whisker' draws the third and fourth value of an item as an interval).
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup


@dataclass(frozen=True)
class Chart:
    """A picture, and the numbers in it, which can be downloaded."""

    option: dict[str, Any]  # ECharts'
    rows: Sequence[dict[str, Any]]
    label: str  # what it shows, for those who cannot see it
    height: int = 420  # pixels
    title: str = ""


@dataclass(frozen=True)
class Drawing:
    """A note in words, then charts, then anything else, which can be downloaded too if its numbers are given."""

    note: Markup | str = ""
    charts: Sequence[Chart] = ()
    html: Markup = field(default_factory=Markup)
    rows: Sequence[dict[str, Any]] = ()  # the numbers in `html`


Draw = Callable[[Any], Drawing | None]


@dataclass(frozen=True)
class Figure:
    """A figure's name, heading, place on the page, and what it is drawn from."""

    name: str
    title: str
    of: str  # 'bench': report.view.View; 'audit': engine.judged.Judged; 'zhang', 'smerf', 'cose', 'yona': a study
    order: int
    once: bool  # drawn for the first definition only
    paper: str  # the figure of a paper that it stands for
    draw: Draw
    group: str = ""  # folded away under these words, with the others of the group


@dataclass(frozen=True)
class Drawn:
    """A figure with its drawing."""

    figure: Figure
    drawing: Drawing
    definition: str = ""  # where a run has several, and this is not the first

    @property
    def id(self) -> str:
        return "-".join(filter(None, (self.figure.name, self.definition)))


_known: dict[str, Figure] = {}


def figure(
    title: str, *, of: str, order: int, once: bool = False, paper: str = "", group: str = ""
) -> Callable[[Draw], Draw]:
    """Put a function on the page; it gives back None where the rows have nothing to draw."""

    def added(draw: Draw) -> Draw:
        _known[draw.__name__] = Figure(draw.__name__, title, of, order, once, paper, draw, group)
        return draw

    return added


def figures(of: str) -> list[Figure]:
    """Every figure in this folder that is drawn from that, in the order of the page."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return sorted((one for one in _known.values() if one.of == of), key=lambda one: one.order)


def drawn(of: str, seen: Any, definition: str = "") -> list[Drawn]:
    """All that have something to draw; under a further definition those that are drawn for each."""
    found = [(one, one.draw(seen)) for one in figures(of) if not (definition and one.once)]
    return [Drawn(one, drawing, definition) for one, drawing in found if drawing is not None]
