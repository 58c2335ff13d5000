"""The classical curves on the natural task, on the same models."""

from typing import TYPE_CHECKING

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._yona_curves import WORDS, curve
from saliometer.report.templates import fill
from saliometer.studies._yona_tables import BESIDE_E, beside_e

if TYPE_CHECKING:
    from saliometer.studies.yona import Study

TEMPLATE = """
<div class="scroll" tabindex="0" role="region" aria-label="The classical tests beside E"><table><thead><tr>
{% for name in head %}<th{% if loop.first %} class="left"{% endif %}>{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for line in lines %}<tr><th scope="row" class="left">{{ line[0] }}</th>
{% for cell in line[1:] %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
"""


@figure("The classical curves", of="yona", order=90, paper="Adebayo et al., Figure 4")
def yona_curves(study: "Study") -> Drawing | None:
    charts = [chart for order in WORDS if (chart := curve(study.evidence, "t", order))]
    if not charts:
        return None
    note = (
        "Layers drawn anew, one after another from the output or from the input, or one alone; the map of the changed "
        "model is compared with that of the whole one. Each model explains its own prediction. Early layers stay "
        "intact for most of the way down, so some likeness must remain there (Binder et al.). Below, Spearman (abs) "
        "once all layers are new, the same of maps averaged over noisy images (smooth), and how much more entropy maps "
        "then have (efficient), beside E: see where noise and edges land in each."
    )
    lines = beside_e(study.evidence)
    told = [dict(zip(BESIDE_E, line, strict=True)) for line in lines]
    return Drawing(note, charts, fill(TEMPLATE, head=BESIDE_E, lines=lines), told)
