"""Figures, one file each: a view of the rows in, a piece of HTML out; a file is found by being there."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from saliometer.report.view import View

Draw = Callable[[View], Markup]


@dataclass(frozen=True)
class Figure:
    """A figure's name, heading and place on the page."""

    name: str
    title: str
    order: int
    once: bool  # drawn for the first definition only
    draw: Draw


_known: dict[str, Figure] = {}


def figure(title: str, *, order: int, once: bool = False) -> Callable[[Draw], Draw]:
    """Put a function on the page; it gives back nothing where the rows have nothing to draw."""

    def added(draw: Draw) -> Draw:
        _known[draw.__name__] = Figure(draw.__name__, title, order, once, draw)
        return draw

    return added


def figures() -> list[Figure]:
    """Every figure in this folder, in the order of the page."""
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{__name__}.{module.name}")
    return sorted(_known.values(), key=lambda one: one.order)
