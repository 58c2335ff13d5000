"""What had to hold before any map was read: accuracy, chance, erasure."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, figure
from saliometer.report.templates import fill

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

TEMPLATE = """
<div class="scroll" tabindex="0" role="region" aria-label="Gates"><table><thead><tr><th class="left">Task</th>
<th class="left">Gate</th><th>value</th><th class="left">bar</th><th class="left"></th></tr></thead><tbody>
{% for row in rows %}<tr><th scope="row" class="left">{{ row.task }}</th><td class="left">{{ row.gate }}</td>
<td>{{ "%.3f" | format(row.value) }}</td><td class="left">{{ row.bar }}</td>
<td class="left">{% if row.passed %}passed{% else %}<span class="fails">✕ missed</span>{% endif %}
{%- if row.note %}<br><small>{{ row.note }}</small>{% endif %}</td></tr>
{% endfor %}</tbody></table></div>
"""


@figure("Gates", of="yona", order=45)
def yona_gates(study: "Study") -> Drawing | None:
    rows = [
        {"task": task, "gate": gate.name} | {key: getattr(gate, key) for key in ("value", "bar", "passed", "note")}
        for task, some in study.evidence.gates.items()
        for gate in some
    ]
    if not rows:
        return None
    note = (
        "Before a map is read, models must know their task, random ones must be at chance, and erasing what is said to "
        "decide must take the answer away. Where a gate is missed the numbers are shown and every verdict of that task "
        "is undecided; where erasure fails, the focus scores of the task are void."
    )
    return Drawing(note, html=fill(TEMPLATE, rows=rows), rows=rows)
