"""A grid of methods by columns, coloured by a number from 0 to 1, with a word in every cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saliometer.report.figures._panels import NAMES, NARROW, methods_down, names
from saliometer.report.view import View

MANY = 12  # columns, for which a phone needs small letters


@dataclass(frozen=True)
class Cell:
    column: int
    row: int
    share: float  # from 0 to 1
    word: str
    told: str  # when pointed at
    ink: str = ""  # of the word, in bold


@dataclass(frozen=True)
class Look:
    """Colours of 0 and 1 (or of 0, a half and 1), and the room above for the columns' names."""

    colours: Sequence[str]
    most: float = 1.8  # text is readable on the lower half
    upright: bool = False  # names of columns, on a page too; they always are on a phone
    wide: int = 34  # pixels above, on a page
    narrow: int = 84  # on a phone
    words: bool = True  # on a phone, too
    alpha: float = 1.0  # of the colours, where text must be readable on their ends


def grid(view: View, columns: Sequence[str], cells: Sequence[Cell], look: Look) -> dict[str, Any]:
    """An option."""

    def room(narrow: bool) -> dict[str, Any]:
        turned, font = 90 if narrow or look.upright else 0, 9 if narrow and len(columns) > MANY else 12
        return {
            "grid": {"left": NAMES[narrow], "right": 8, "top": look.narrow if narrow else look.wide, "bottom": 8},
            "xAxis": {"axisLabel": {"rotate": turned, "interval": 0, "hideOverlap": False, "fontSize": font}},
            "yAxis": names(narrow=narrow),
            "series": [{"label": {"show": look.words or not narrow}}],
        }

    wide = room(narrow=False)
    return {
        "tooltip": {"formatter": "{b}"},
        "grid": wide["grid"],
        "xAxis": {"type": "category", "position": "top", "data": list(columns), **wide["xAxis"]},
        "yAxis": methods_down(view) | wide["yAxis"],
        "visualMap": {
            "show": False,
            "min": 0,
            "max": look.most,
            "dimension": 2,
            "inRange": {"color": list(look.colours), "colorAlpha": look.alpha},
        },
        "series": [
            {
                "type": "heatmap",
                "name": "success",
                "label": {"show": True, "color": "@ink", "fontSize": 11, "lineHeight": 12},
                "itemStyle": {"borderColor": "@rule", "borderWidth": 1},
                "data": [_item(cell) for cell in cells],
            }
        ],
        "media": [{"query": {"maxWidth": NARROW}, "option": room(narrow=True)}, {"option": room(narrow=False)}],
    }


def _item(cell: Cell) -> dict[str, Any]:
    ink = {"color": cell.ink, "fontWeight": 700} if cell.ink else {}
    value = [cell.column, cell.row, round(cell.share, 4)]
    return {"name": cell.told, "value": value, "label": {"formatter": cell.word, **ink}}
