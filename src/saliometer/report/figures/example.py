"""The idea in one picture: an image, what decides in it, and what a good and a bad map make of it."""

from saliometer.report.figures import Drawing, figure
from saliometer.report.figures._names import name
from saliometer.report.figures._pictures import PRIMARY, SECONDARY, scenes
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import kind, rule

TEMPLATE = """
<p class="note">Model {{ setting }} was made so that one rule decides: {{ rule }}. So we know where a
map of it should point: at the <b class="on-primary">solid outline</b>, not at the
<b class="on-secondary">dashed</b> ones.</p>
<div class="example" style="--outlines:url('{{ scene.outlines }}')">
<figure><span class="map"><img src="{{ scene.image }}" alt="image of {{ scene.bucket | bucket(run) }}"></span>
<figcaption><b>the image</b><small>{{ scene.bucket | bucket(run) }}</small></figcaption></figure>
{% for label, map in maps %}
<figure><span class="map"><img src="{{ map.picture }}" alt="map of {{ map.method }}"></span>
<figcaption>{{ label }}<small><b class="on-primary">{{ map.pafl | percent }}&nbsp;%</b> on what decides,
<b class="on-secondary">{{ map.safl | percent }}&nbsp;%</b> on objects that do not</small></figcaption></figure>
{% endfor %}
</div>
"""


@figure("The idea", of="bench", order=10, once=True)
def example(view: View) -> Drawing | None:
    """The richest image of the first setting that shows both kinds of object."""
    chosen = _chosen(view)
    for setting in view.settings:
        both = [scene for scene in scenes(view, setting, chosen) if {PRIMARY, SECONDARY} <= scene.roles]
        if both:
            maps = [(name(view, map.method), map) for map in both[-1].maps if map.picture]
            told = {"setting": setting, "rule": rule(setting, view.run), "scene": both[-1], "maps": maps}
            return Drawing(html=fill(TEMPLATE, run=view.run, **told))
    return None


def _chosen(view: View) -> list[str]:
    """The first and the last in rank, and noise."""
    ranked = [standing.method for standing in view.standings if standing.rank]
    noise = [method for method in view.controls if kind(method) == "random" and method in view.methods]
    return list(dict.fromkeys([*ranked[:1], *ranked[-1:], *noise]))
