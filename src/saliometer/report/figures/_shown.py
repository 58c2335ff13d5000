"""Images of a part of the study, one of each bucket in every setting, with outlines, label and prediction."""

from saliometer.report.figures import Drawing
from saliometer.report.figures._pictures import Scene, scenes
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import bucket, question

OUTLINES = "What decides has a solid outline, what plays no part a dashed one, what is not scored a dotted one."
TEMPLATE = """
{% for setting, question, shown in settings %}
<h4>{{ setting }} <small>{{ question }}</small></h4>
<div class="strip">
{% for scene in shown %}
<figure><span class="map" style="--outlines:url('{{ scene.outlines }}')">
<img src="{{ scene.image }}" alt="image of {{ scene.bucket | bucket(run) }}"></span>
<figcaption>{{ scene.bucket | bucket(run) }}<small>label {{ scene.label }},
{% if scene.label == scene.target %}{{ word }}&nbsp;{{ scene.target }}
{%- else %}<b class="fails">{{ word }}&nbsp;{{ scene.target }}</b>{% endif %}</small></figcaption></figure>
{% endfor %}
</div>
{% endfor %}
"""


def shown(view: View, note: str) -> Drawing | None:
    """None where the run kept no thumbnails."""
    found = {setting: scenes(view, setting, ()) for setting in view.settings}
    found = {setting: some for setting, some in found.items() if some}
    if not found:
        return None
    word = "predicted" if view.run.manifest["request"]["target"] == "predicted" else "explained as"
    told = [(setting, question(setting, view.run), some) for setting, some in found.items()]
    html = fill(TEMPLATE, settings=told, word=word, run=view.run)
    rows = [_row(view, setting, scene) for setting, some in found.items() for scene in some]
    return Drawing(note, html=html, rows=rows)


def _row(view: View, setting: str, scene: Scene) -> dict[str, object]:
    return {
        "setting": setting, "bucket": scene.bucket, "shows": bucket(scene.bucket, view.run), "label": scene.label,
        "explained": scene.target,
    }  # fmt: skip
