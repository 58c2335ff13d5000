"""Horizontal bars from 0 to 100, as wide as their table cell; lines run through from row to row."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from saliometer.report.templates import fill

TEMPLATE = """
<svg class="bars lines" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
{% if half %}<line class="half" x1="50" x2="50" y1="0" y2="100"/>{% endif %}
{% if ceiling is not none %}
<line class="ceiling" x1="{{ ceiling * 100 }}" x2="{{ ceiling * 100 }}" y1="0" y2="100"/>
{% endif %}
</svg>
<svg class="bars" viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
{% for bar, top in bars %}
<rect class="{{ bar.look }}" x="0" y="{{ top }}" width="{{ bar.value * 100 }}" height="{{ thick }}"/>
{% if bar.low < bar.high %}
{% for look in ("halo", "whisker") %}
<path class="{{ look }}" d="M{{ bar.low * 100 }} {{ top + thick / 2 }}H{{ bar.high * 100 }}
{%- for end in (bar.low, bar.high) %}M{{ end * 100 }} {{ top + thick * 0.2 }}v{{ thick * 0.6 }}{% endfor %}"/>
{% endfor %}
{% endif %}
{% endfor %}
</svg>
"""


@dataclass(frozen=True)
class Bar:
    """A value with a whisker, all from 0 to 1; `look` is a class of the page's style."""

    value: float
    low: float
    high: float
    look: str

    def cut(self) -> "Bar":
        low, value, high = (round(min(max(x, 0.0), 1.0), 4) for x in (self.low, self.value, self.high))
        return Bar(value, low, high, self.look)


def bars(*given: Bar, ceiling: float = math.nan, half: bool = False) -> Markup:
    """One bar under the other; one without a value leaves its place empty."""
    thick = {1: 44, 2: 32}[len(given)]
    tops = {1: [28], 2: [16, 52]}[len(given)]
    drawn = [
        (bar.cut(), top) for bar, top in zip(given, tops, strict=True) if not math.isnan(bar.value + bar.low + bar.high)
    ]
    line = None if math.isnan(ceiling) else round(ceiling, 4)
    return fill(TEMPLATE, bars=drawn, thick=thick, ceiling=line, half=half)
