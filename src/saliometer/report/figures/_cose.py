"""Parts of COSE's figures: values as dots with intervals, and rows of maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from saliometer.report.figures._overlay import map_uri, photo_uri
from saliometer.studies._cose_figures import Photo, Shown, told
from saliometer.studies._cose_paper import CONV, TRANSFORMER
from saliometer.studies._zhang_tables import Value
from saliometer.summary import Estimate

INKS = {CONV: "@own", TRANSFORMER: "@method"}
MORE_INKS = ("@method", "@own", "@secondary", "@fail", "@ink")
STYLE = """
.cose-maps { border-collapse: separate; border-spacing: 4px; width: auto; font-size: 0.8rem; }
.cose-maps th, .cose-maps td { padding: 0; text-align: center; vertical-align: top; border: 0; }
.cose-maps tbody tr { border: 0; }
.cose-maps thead th { max-width: 6rem; padding: 0 0.3rem; vertical-align: bottom; }
.cose-maps th.left { text-align: left; max-width: 11rem; padding-right: 0.5rem; vertical-align: middle; }
.cose-maps i { display: block; width: 72px; height: 72px; margin: 0 auto 2px; background: center / 100% 100%; }
.cose-maps i img { display: block; width: 100%; height: 100%; image-rendering: auto; }
.cose-maps thead th.left { max-width: none; white-space: nowrap; }
.cose-maps td.gap { width: 14px; }
.cose-maps small { font-size: 0.68rem; line-height: 1.2; }
.cose-maps .moved { color: var(--fail); font-weight: 600; }
"""


def value(method: str, metric: str, condition: str, found: Estimate, paper: float | None = None) -> Value | None:
    """As a chart takes it; None where there is nothing to draw."""
    if np.isnan(found.value):
        return None
    return Value("COSE", condition, method, metric, found.value, found.low, found.high, paper)


def table(label: str, head: Sequence[Markup], rows: Sequence[Markup], kind: str = "") -> Markup:
    """Cells of the head, then whole rows, in a table that scrolls by itself."""
    return Markup(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="{}"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(label, kind, Markup("").join(head), Markup("").join(rows))


def cell(tag: str, words: object, left: bool = False) -> Markup:
    return Markup("<{}{}>{}</{}>").format(Markup(tag), Markup(' class="left"') if left else "", words, Markup(tag))


class Sheet:
    """Photographs and maps of a figure, each photograph held once."""

    def __init__(self, name: str) -> None:
        self.name, self._photos = name, dict[bytes, str]()
        self._rules: list[str] = []

    def photo(self, photo: Photo) -> str:
        """The class of a photograph."""
        key = photo.tobytes()
        if key not in self._photos:
            self._photos[key] = f"{self.name}-{len(self._photos)}"
            self._rules.append(f".cose-maps .{self._photos[key]} {{ background-image: url({photo_uri(photo)}); }}")
        return self._photos[key]

    def image(self, shown: Shown, words: str = "") -> Markup:
        caption = words or told(shown.condition)
        return Markup('<td><i class="{}"></i><small>{}</small></td>').format(self.photo(shown.photo), caption)

    def map(self, shown: Shown | None, itself: bool = False) -> Markup:
        if shown is None:
            return Markup("<td><small>none</small></td>")
        words = (
            Markup("")
            if itself
            else Markup('<small class="{}">{:.2f}{}</small>').format(
                "moved" if shown.changed else "", shown.similar, ", moved" if shown.changed else ""
            )
        )
        return Markup('<td><i class="{}"><img src="{}" alt=""></i>{}</td>').format(
            self.photo(shown.photo), map_uri(shown.map), words
        )

    def table(self, head: Sequence[Markup], rows: Sequence[Markup]) -> Markup:
        style = Markup("<style>{}{}</style>").format(Markup(STYLE), Markup("\n".join(self._rules)))
        return style + table("Maps", head, rows, "cose-maps")


def named_row(name: str, words: str, cells: Sequence[Markup]) -> Markup:
    return Markup('<tr><th class="left" scope="row">{}<small>{}</small></th>{}</tr>').format(
        name, words, Markup("").join(cells)
    )


GAP = Markup('<td class="gap"></td>')


def rows_of(shown: Mapping[str, Shown], method: str, image: str) -> list[dict[str, Any]]:
    """The numbers behind a row of maps."""
    return [
        {"method": method, "image": image, "change": one.condition, "similarity": one.similar, "moved": one.changed}
        for one in shown.values()
    ]
