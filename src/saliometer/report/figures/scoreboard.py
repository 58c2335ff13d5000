"""The scoreboard: methods by mean PAFL with its interval, their worst bucket, and the controls beside them."""

import math
from collections import Counter

from markupsafe import Markup

from saliometer.report.figures import figure
from saliometer.report.figures._bars import Bar, bars
from saliometer.report.figures._names import name
from saliometer.report.templates import DASH, fill
from saliometer.report.view import View
from saliometer.summary import Standing

TEMPLATE = """
<p class="note">Mean PAFL over {{ buckets }} buckets: the share of a map’s attribution that lies on the objects that
decide. Numbers are times 100; higher is better.
{% if single %}With one image a bucket there are no intervals, and ranks follow the bare means.
{% else %}Whiskers and small print are 95 % intervals; methods whose paired difference could be zero share a rank (1=).
{% endif %} Controls explain nothing and have no rank.</p>
<p class="legend"><span><i class="key method"></i>method</span> <span><i class="key control"></i>control</span>
{% if ceiling is not none %}
<span><i class="key line"></i>ceiling {{ ceiling | percent }}: the truth itself as a map (the oracle)</span>
{% endif %}</p>
<div class="scroll"><table class="scoreboard">
<thead><tr><th class="rank">Rank</th><th class="left">Method</th>
<th class="chart"><div class="axis"><span>0</span><span>50</span><span>100</span></div></th>
<th>Mean PAFL</th><th>Simple</th><th>Complex</th><th class="left">Worst bucket</th></tr></thead>
<tbody>
{% for row in rows %}
{% set one = row.standing %}
<tr data-method="{{ one.method }}" class="{{ row.role }}">
<td class="rank">{{ row.rank }}</td>
<th scope="row" class="left">{{ row.name }}</th>
<td class="chart">{{ row.bar }}</td>
{% for estimate, worst in ((one.mean, none), (one.simple, one.worst_simple), (one.complex, one.worst_complex)) %}
<td class="number"><b>{{ estimate.value | percent }}</b>
{%- if not single and estimate.value == estimate.value -%}
<small>{{ estimate.low | percent }}–{{ estimate.high | percent }}</small>
{%- endif %}
{%- if worst and worst.value == worst.value -%}<small>worst {{ worst.value | percent }}</small>{%- endif %}</td>
{% endfor %}
<td class="left worst">
{%- if one.complete -%}
<b>{{ one.worst.value | percent }}</b><small>{{ one.worst_cell[0] }}: {{ one.worst_cell[1] | bucket }}</small>
{%- else -%}<small>incomplete: {{ row.has }} of {{ buckets }} buckets</small>
{%- endif %}</td>
</tr>
{% endfor %}
{% for method in lost %}
<tr class="lost"><td class="rank">–</td><th scope="row" class="left">{{ method }}</th>
<td class="chart"></td><td colspan="4" class="left"><small>no score: see the warnings</small></td></tr>
{% endfor %}
</tbody></table></div>
"""


@figure("Who leads", order=20)
def scoreboard(view: View) -> Markup:
    """Bars from 0 to 100, ranked."""
    if not view.standings:
        return Markup("")
    ceiling = view.ceiling()
    shared = Counter(standing.rank for standing in view.standings)
    rows = [
        {
            "standing": standing,
            "rank": _rank(standing, shared),
            "name": name(view, standing.method),
            "role": view.role(standing.method),
            "bar": bars(_bar(standing), ceiling=ceiling),
            "has": _buckets_with_value(view, standing.method),
        }
        for standing in view.standings
    ]
    return fill(
        TEMPLATE,
        rows=rows,
        lost=[name(view, method) for method in view.lost],
        buckets=len(view.primary.cells),
        ceiling=None if math.isnan(ceiling) else ceiling,
        single=view.single,
    )


def _rank(standing: Standing, shared: Counter[int]) -> str:
    if not standing.rank:
        return "" if standing.control else DASH
    return f"{standing.rank}{'=' if shared[standing.rank] > 1 else ''}"


def _bar(standing: Standing) -> Bar:
    look = "control" if standing.control else "method"
    return Bar(standing.mean.value, standing.mean.low, standing.mean.high, look)


def _buckets_with_value(view: View, method: str) -> int:
    column = view.primary.means[:, view.primary.methods.index(method)]
    return sum(not math.isnan(value) for value in column)
