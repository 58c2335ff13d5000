"""What changes E: the class that is explained, softmax, the half that is deleted, initialisation, batch norm, width."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, figure
from saliometer.report.templates import fill

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

TEMPLATE = """
<div class="scroll" tabindex="0" role="region" aria-label="Ablations"><table><thead><tr><th class="left">Change</th>
<th class="left">Task</th><th class="left">Method</th><th>E</th><th>E/B</th><th>E as it was</th></tr></thead><tbody>
{% for row in rows %}<tr><th scope="row" class="left">{{ row.change }}</th><td class="left">{{ row.task }}</td>
<td class="left">{{ row.method }}</td><td class="number">{{ "%.3f" | format(row.E) }}
<small>{{ "%.3f" | format(row.low) }} to {{ "%.3f" | format(row.high) }}</small></td>
<td>{{ "%.2f" | format(row.share) }}</td>
<td>{{ "%.3f" | format(row.before) }}</td></tr>
{% endfor %}</tbody></table></div>
{% if unrun %}<p class="note">Not run: {% for name, why in unrun %}{{ name }} ({{ why }}){{ "; " if not loop.last }}
{%- endfor %}.</p>{% endif %}
"""


@figure("What changes the result", of="yona", order=120, group="Ablations")
def yona_ablations(study: "Study") -> Drawing | None:
    e = study.evidence
    rows = [
        {
            "change": change, "task": task, "method": method, "E": one.effect.value, "low": one.effect.low,
            "high": one.effect.high, "share": one.share, "before": e.energy(task, method).effect.value,
        }
        for change, task, method, one in e.ablations()
        if e.has(task, method)
    ]  # fmt: skip
    if not rows and not study.unrun:
        return None
    return Drawing(
        "E with one thing changed, beside E as it was.", html=fill(TEMPLATE, rows=rows, unrun=study.unrun), rows=rows
    )
