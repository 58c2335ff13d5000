"""PAFL and SAFL side by side, for simple and for complex reasoning (Figures 6a and 8a of Kim et al., 2022)."""

import math

from markupsafe import Markup

from saliometer.report.figures import figure
from saliometer.report.figures._bars import Bar, bars
from saliometer.report.figures._names import name
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.summary import Scores

TEMPLATE = """
<p class="note">Where the attribution goes, on average over buckets; whiskers are the standard deviation over buckets,
as in the paper. PAFL should be high and SAFL low. They need not add up to 100: some goes to the background, and SAFL
also runs over images in which nothing decides, where even a fair map can only mark objects that play no part.</p>
<p class="legend"><span><i class="key primary"></i>PAFL: on the objects that decide</span>
<span><i class="key secondary"></i>SAFL: on those that play no part</span>
<span><i class="key half"></i>half of the attribution</span>
<span><i class="key line"></i>ceiling of PAFL (the oracle)</span></p>
<div class="panels">
{% for panel in panels %}
<div class="scroll"><table class="focus">
<thead><tr><th class="left">{{ panel.title }}</th>
<th class="chart"><div class="axis"><span>0</span><span>50</span><span>100</span></div></th>
<th>PAFL</th><th>SAFL</th></tr></thead>
<tbody>
{% for row in panel.rows %}
<tr data-method="{{ row.method }}"><th scope="row" class="left">{{ row.name }}</th><td class="chart">{{ row.bars }}</td>
<td class="number on-primary">{{ row.pafl | percent }}</td>
<td class="number on-secondary">{{ row.safl | percent }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endfor %}
</div>
"""

TITLES = {"simple": "Simple reasoning", "complex": "Complex reasoning"}


@figure("Where the attribution goes", order=40)
def focus(view: View) -> Markup:
    """One panel for each group of settings that was run."""
    groups = [group for group in TITLES if view.primary.of(group)]
    panels = [{"title": TITLES[group], "rows": [_row(view, m, group) for m in view.methods]} for group in groups]
    return fill(TEMPLATE, panels=panels) if panels else Markup("")


def _row(view: View, method: str, group: str) -> dict[str, object]:
    primary, secondary = (
        _bar(scores, method, group, look) for scores, look in ((view.primary, "primary"), (view.secondary, "secondary"))
    )
    drawn = bars(primary, secondary, ceiling=view.ceiling(group), half=True)
    label = name(view, method)
    return {"method": method, "name": label, "bars": drawn, "pafl": primary.value, "safl": secondary.value}


def _bar(scores: Scores, method: str, group: str, look: str) -> Bar:
    if not scores.of(group) or method not in scores.methods:
        return Bar(math.nan, math.nan, math.nan, look)
    value = float(scores.means[scores.of(group), scores.methods.index(method)].mean())
    spread = scores.spread(method, group)
    return Bar(value, value - spread, value + spread, look)
