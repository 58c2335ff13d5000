"""The headline: what the original check and the causal one say of each method."""

from typing import TYPE_CHECKING, Any

from saliometer.report.figures import Chart, Drawing, figure
from saliometer.report.figures._zhang import NARROW
from saliometer.report.templates import fill
from saliometer.studies._yona_evidence import CAUSAL
from saliometer.studies._yona_headline import CAUSAL_RULE, RULE, Checked, checked

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

TEMPLATE = """
<div class="scroll" tabindex="0" role="region" aria-label="Both checks by method"><table><thead><tr>
<th class="left">Method</th><th>Spearman (abs) on t</th><th class="left">original check</th>
<th class="left">causal check</th><th class="left">by E and DD alone</th><th class="left">why</th></tr></thead><tbody>
{% for one in every %}
<tr><th scope="row" class="left">{{ one.method }}</th><td>{{ "%.3f" | format(one.alike) }}</td>
{% for word in (one.original, one.causal, one.leans) %}
<td class="left">{% if word == "fails" %}<span class="fails">fails</span>{% else %}{{ word }}{% endif %}</td>
{% endfor %}
<td class="left" style="min-width:16rem"><small>{{ one.why }}</small></td></tr>
{% endfor %}</tbody></table></div>
"""


@figure("Who fails one check and passes the other?", of="yona", order=70)
def yona_checks(study: "Study") -> Drawing | None:
    e = study.evidence
    every = checked(e)
    if not every:
        return None
    note = f"A method {RULE}. It {CAUSAL_RULE}. The last column leaves gates and permutation tests aside."
    return Drawing(note, [_scatter(e, every)], fill(TEMPLATE, every=every), [vars(one) for one in every])


def _scatter(e: "Evidence", every: list[Checked]) -> Chart:
    """Across: alike on t; up: the mean of E/B over the causal tasks."""
    points: dict[str, list[dict[str, Any]]] = {"method": [], "control": []}
    rows = []
    for one in every:
        tasks = [task for task in CAUSAL if e.has(task, one.method)]
        if not tasks:
            continue
        share = sum(e.energy(task, one.method).share for task in tasks) / len(tasks)
        kind = "control" if one.method in e.controls else "method"
        points[kind].append({"name": one.method, "value": [round(one.alike, 4), round(share, 4)]})
        rows.append({"method": one.method, "Spearman (abs) on t": one.alike, "mean E/B on causal tasks": share})
    label = {"formatter": "{b}", "position": "right", "fontSize": 11, "color": "@ink"}
    series = [
        {
            "type": "scatter", "name": kind, "symbolSize": 9, "data": some, "label": label,
            "labelLayout": {"hideOverlap": True}, "itemStyle": {"color": f"@{kind}"},
        }
        for kind, some in points.items()
    ]  # fmt: skip
    option = {
        "tooltip": {"formatter": "{b}: {c}"},
        "legend": {"top": 0, "data": list(points)},
        "xAxis": _axis("Spearman (abs) of trained with random on t", 28),
        "yAxis": _axis("mean E/B on causal tasks", 38),
        "series": series,
        "media": [
            {"query": {"maxWidth": NARROW}, "option": _fitted(16, len(series), named=False)},
            {"option": _fitted(110, len(series), named=True)},
        ],
    }
    return Chart(option, rows, "Likeness on the natural task against E/B on causal tasks, by method")


def _fitted(right: int, count: int, *, named: bool) -> dict[str, Any]:
    """Names stand beside the points where there is room for them."""
    grid = {"left": 54, "right": right, "top": 36, "bottom": 46}
    return {"grid": grid, "series": [{"label": {"show": named}} for _ in range(count)]}


def _axis(name: str, gap: int) -> dict[str, Any]:
    return {"type": "value", "name": name, "nameLocation": "middle", "nameGap": gap, "scale": True}
