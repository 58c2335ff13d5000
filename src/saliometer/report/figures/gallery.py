"""The gallery: one image of each bucket and every method's map of it, setting by setting."""

from markupsafe import Markup

from saliometer.report.figures import figure
from saliometer.report.figures._names import name
from saliometer.report.figures._pictures import scenes
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import SETTINGS

TEMPLATE = """
<p class="note">One image of each bucket. Each map is scaled by its own largest value; colour
grows with the square root, so that faint attribution shows.
<b class="on-primary">PAFL</b> and <b class="on-secondary">SAFL</b> of that one map stand below it; a dash where the
image shows no such object.</p>
<p class="legend"><span><i class="key box primary"></i>decides</span>
<span><i class="key box secondary"></i>plays no part</span> <span><i class="key box neither"></i>not scored</span>
<span>against the class<i class="ramp"></i>for it</span></p>
{% for setting, rule, rows in settings %}
<details class="gallery"{{ " open" if loop.first }}><summary><b>{{ setting }}</b> {{ rule }}</summary>
<div class="scroll"><table class="maps">
<thead><tr><th class="left">Image shows</th><th>image</th>
{% for label in labels %}<th>{{ label }}</th>{% endfor %}
</tr></thead><tbody>
{% for scene in rows %}
<tr style="--outlines:url('{{ scene.outlines }}')">
<th scope="row" class="left">{{ scene.bucket | bucket }}<small>bucket {{ scene.bucket }}, class {{ scene.label }}
{%- if scene.target != scene.label %}; explains class {{ scene.target }}{% endif %}</small></th>
<td><span class="map"><img src="{{ scene.image }}" alt="image of {{ scene.bucket | bucket }}"></span></td>
{% for map in scene.maps %}
<td>{% if map.picture %}<span class="map"><img src="{{ map.picture }}" alt="map of {{ map.method }}"></span>
{% else %}<span class="map none"></span>{% endif %}
<small><b class="on-primary">{{ map.pafl | percent }}</b>
<b class="on-secondary">{{ map.safl | percent }}</b></small></td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div></details>
{% endfor %}
"""


@figure("Look at the maps", order=50, once=True)
def gallery(view: View) -> Markup:
    """A table for each setting; the first is open."""
    settings = [
        (setting, SETTINGS[setting].rule if setting in SETTINGS else "", rows)
        for setting in view.settings
        if (rows := scenes(view, setting))
    ]
    labels = [name(view, method) for method in view.methods]
    return fill(TEMPLATE, settings=settings, labels=labels) if settings else Markup("")
