"""One method's maps of all models on the same kinds of image (Figure 9 of Kim et al., 2022)."""

from collections.abc import Sequence

from markupsafe import Markup

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._names import name
from saliometer.report.figures._pictures import Scene, scenes
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import bucket as bucket_words
from saliometer.report.words import kind, of_another_task, question
from saliometer.studies._smerf_paper import SHORT

BUCKETS = ("8", "9", "11", "12")  # A and B, with Box1, and with both boxes
TEMPLATE = """
<p class="note">Maps of {{ label }}. Each model answers another question, so maps that tell the truth differ from column
to column: they mark what has a <b class="on-primary">solid outline</b> and leave out what has a
<b class="on-secondary">dashed</b> one.
{% if not same %}Each setting has images of its own: those of a row show the same objects at other places. {% endif %}
Below each map: its <b class="on-primary">PAFL</b> and <b class="on-secondary">SAFL</b>.</p>
<div class="scroll" tabindex="0" role="region" aria-label="The same image through every model"><table class="maps">
<thead><tr><th class="left">Image shows</th>{% if same %}<th>image</th>{% endif %}
{% for setting, question in settings %}<th>{{ setting }}<small>{{ question }}</small></th>{% endfor %}
</tr></thead><tbody>
{% for bucket, cells in rows %}
{% for method in methods %}
<tr><th scope="row" class="left">{% if loop.first %}{{ bucket | bucket(run) }}{% endif %}
{% if methods | length > 1 %}<small>{{ method | broken }}</small>{% endif %}</th>
{% if same %}
<td>{% if loop.first %}<span class="map none"><img src="{{ cells[0].image }}" alt="image of {{ bucket | bucket(run) }}">
</span>{% endif %}</td>
{% endif %}
{% set place, first = loop.index0, loop.first %}
{% for scene in cells %}
<td style="--outlines:url('{{ scene.outlines }}')">
{% if first and not same %}
<span class="map none"><img src="{{ scene.image }}" alt="image of {{ bucket | bucket(run) }}"></span>
{% endif %}
{% set map = scene.maps[place] %}
<span class="map"><img src="{{ map.picture }}" alt="map of {{ map.method }}"></span>
<small><b class="on-primary">{{ map.pafl | percent }}</b>
<b class="on-secondary">{{ map.safl | percent }}</b></small></td>
{% endfor %}
</tr>
{% endfor %}
{% endfor %}
</tbody></table></div>
"""


@figure("The same kind of image through every model", of="bench", order=80, once=True, paper="SMERF Figure 9")
def smerf_9(view: View) -> Drawing | None:
    """None where the images are not TextBox's."""
    method = "" if of_another_task(view.run) else _chosen(view)
    return through(view, [method]) if method else None


def through(view: View, methods: Sequence[str]) -> Drawing | None:
    """Maps of these methods by all models; None where fewer than two models have maps of such an image."""
    shown = {setting: _by_bucket(view, setting, methods) for setting in view.settings}
    shown = {setting: kept for setting, kept in shown.items() if kept}
    buckets = [bucket for bucket in BUCKETS if all(bucket in kept for kept in shown.values())]
    if len(shown) < 2 or not buckets:
        return None
    rows = [(bucket, [kept[bucket] for kept in shown.values()]) for bucket in buckets]
    same = all(len({scene.image for scene in cells}) == 1 for _, cells in rows)
    settings = [(s, question(s, view.run)) for s in shown]
    label = Markup(", ").join(name(view, method) for method in methods)
    html = fill(TEMPLATE, label=label, methods=methods, settings=settings, rows=rows, same=same, run=view.run)
    numbers = [
        {"method": one.method, "setting": s, "shows": bucket_words(bucket, view.run), "pafl": one.pafl,
         "safl": one.safl}
        for bucket in buckets for s, kept in shown.items() for one in kept[bucket].maps
    ]  # fmt: skip
    return Drawing(html=html, rows=numbers)


def _chosen(view: View) -> str:
    """The paper's integrated gradients, or another, or the first in rank."""
    others = [method for method in view.methods if kind(method) == "integrated_gradients"]
    ranked = [standing.method for standing in view.standings if standing.rank]
    paper = [method for method in others if SHORT.get(method) == "IG"]
    return next(iter([*paper, *others, *ranked, *view.methods]), "")


def _by_bucket(view: View, setting: str, methods: Sequence[str]) -> dict[str, Scene]:
    found = scenes(view, setting, methods)
    return {one.bucket: one for one in found if one.bucket in BUCKETS and all(map_.picture for map_ in one.maps)}
