"""Success and failure of every method in every setting (Figure 7 of Kim et al., 2022)."""

from markupsafe import Markup

from saliometer.report.figures import figure
from saliometer.report.figures._names import name
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import SETTINGS

TEMPLATE = """
<p class="note">Only buckets that show both kinds of object count. <b>4/6</b> means: in 4 of 6 such buckets more than
half of the attribution lies on the objects that decide (mean PAFL above 50), a success.
<span class="fails">✕ fails</span> means: in more than half of them the objects that play no part get more
(SAFL above PAFL).</p>
<div class="scroll"><table class="matrix">
<thead><tr><th class="left">Method</th>
{% for setting in settings %}
<th>{{ setting }}<small>{{ questions[setting] }}</small></th>
{% endfor %}
</tr></thead><tbody>
{% for method, label, cells in rows %}
<tr data-method="{{ method }}"><th scope="row" class="left">{{ label }}</th>
{% for cell in cells %}
{% if cell %}
<td style="--share:{{ "%.2f" | format(cell.succeeded / cell.buckets) }}"
 title="success in {{ cell.succeeded }}, failure in {{ cell.failed }} of {{ cell.buckets }} buckets">
<b>{{ cell.succeeded }}/{{ cell.buckets }}</b>
{%- if cell.failed * 2 > cell.buckets %}<span class="fails">✕ fails</span>{% endif %}</td>
{% else %}<td class="none">{{ DASH }}</td>
{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
"""


@figure("Success and failure", order=30)
def matrix(view: View) -> Markup:
    """Methods by settings; a dash where a method lacks a bucket."""
    settings = [s for s in view.settings if any(s in found for found in view.verdicts.values())]
    if not settings:
        return Markup("")
    rows = [(m, name(view, m), [view.verdicts[m].get(s) for s in settings]) for m in view.methods]
    questions = {s: SETTINGS[s].question if s in SETTINGS else "" for s in settings}
    return fill(TEMPLATE, settings=settings, questions=questions, rows=rows)
