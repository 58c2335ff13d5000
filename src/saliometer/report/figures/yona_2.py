"""Figure 2 of Yona and Greenfeld: the causal graph, and equation (1) in numbers."""

from typing import TYPE_CHECKING

from markupsafe import Markup

from saliometer.report.figures import Drawing, _yona, figure
from saliometer.report.templates import fill
from saliometer.studies._claims import MissingError

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies.yona import Study

NODES = {"T": (150, 40, "task"), "M": (60, 130, "model"), "X": (240, 130, "image"), "S": (150, 220, "map")}
EDGES = (("T", "M"), ("T", "X"), ("X", "S"), ("M", "S"))
RADIUS = 22
NOTE = (
    "The task T decides both which images X there are and what a trained model M looks for, so a map S may be like a "
    "random model's because the task says so. Equation (1) averages the model's effect on the map over the tasks that "
    "may show an image, weighted by how probable each is given that image. The dashed edge is ours: with M as trained "
    "or not, S still hangs on which task was learned. Half norms lie between 0 and 1; what they are after all models "
    "changed places by lot is taken off. With few models that is more than chance where groups differ much, so numbers "
    "are on the low side and may fall below 0. Where effects cancel, the mean of norms is larger than the norm of the "
    "mean."
)
TEMPLATE = """
<div class="scroll" tabindex="0" role="region" aria-label="Equation (1)"><table><thead><tr><th class="left">Method</th>
{% for condition in conditions %}<th>{{ condition }}<small>norm of the mean / mean of norms</small></th>{% endfor %}
</tr></thead><tbody>
{% for method, cells in rows %}<tr><th scope="row" class="left">{{ method }}</th>
{% for cell in cells %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
"""


@figure("Why the task matters", of="yona", order=40, paper=f"{_yona.PAPER} 2")
def yona_2(study: "Study") -> Drawing | None:
    e = study.evidence
    conditions = list(e.posteriors)
    rows = [(m, [_cell(e, m, *where) for where in conditions]) for m in (*e.methods, *e.controls)]
    words = [condition.removeprefix("posterior(").removesuffix(")") for _, condition in conditions]
    table = fill(TEMPLATE, conditions=words, rows=rows) if conditions else Markup("")
    told = [
        {"method": method, "weights": word, "norm of the mean / mean of norms": cell}
        for method, cells in rows
        for word, cell in zip(words, cells, strict=True)
    ]
    return Drawing(NOTE, html=_graph() + table, rows=told)


def _cell(e: "Evidence", method: str, task: str, condition: str) -> str:
    try:
        both = [
            e.value(task, "", method, name, condition=condition)
            for name in ("lambda.corrected", "lambda.companion_corrected")
        ]
    except MissingError:
        return "–"
    return f"{both[0]:.3f} / {both[1]:.3f}"


def _graph() -> Markup:
    arrows = "".join(_arrow(*NODES[one][:2], *NODES[other][:2]) for one, other in EDGES)
    arrows += _arrow(*NODES["T"][:2], *NODES["S"][:2], dashed=True)
    nodes = "".join(
        f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="var(--card)" stroke="var(--ink)" stroke-width="1.5"/>'
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="var(--ink)" font-weight="600">{name}</text>'
        f'<text x="{x + 28}" y="{y + 4}" fill="var(--soft)" font-size="12">{word}</text>'
        for name, (x, y, word) in NODES.items()
    )
    head = (
        '<defs><marker id="yona-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L10 5L0 10z" fill="var(--ink)"/></marker></defs>'
    )
    return Markup(
        f'<svg viewBox="0 0 320 260" role="img" aria-label="Causal graph: the task T leads to the model M and the '
        f'image X, both lead to the map S" style="max-width:340px;width:100%">{head}{arrows}{nodes}</svg>'
    )


def _arrow(x: float, y: float, to_x: float, to_y: float, *, dashed: bool = False) -> str:
    length = ((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5
    across, down = (to_x - x) / length * RADIUS, (to_y - y) / length * RADIUS
    style = ' stroke-dasharray="5 4" opacity="0.6"' if dashed else ""
    return (
        f'<line x1="{x + across:.1f}" y1="{y + down:.1f}" x2="{to_x - across:.1f}" y2="{to_y - down:.1f}" '
        f'stroke="var(--ink)" stroke-width="1.5" marker-end="url(#yona-arrow)"{style}/>'
    )
