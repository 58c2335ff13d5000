"""Maps from each method's lowest bucket."""

import math

from markupsafe import Markup

from saliometer.report.figures import Drawing
from saliometer.report.figures._pictures import Map, Scene, scenes
from saliometer.report.figures._shown import OUTLINES
from saliometer.report.figures._smerf import label
from saliometer.report.figures._study import seen
from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import bucket, question
from saliometer.studies._smerf_study import Study

TEMPLATE = """
{% for scene, maps in groups %}
<h4>{{ scene.bucket | bucket(run) }} <small>lowest for {{ maps | length }} of {{ count }} methods</small></h4>
<div class="strip" style="--outlines:url('{{ scene.outlines }}')">
<figure><span class="map"><img src="{{ scene.image }}" alt="image of {{ scene.bucket | bucket(run) }}"></span>
<figcaption>the image</figcaption></figure>
{% for label, map, mean in maps %}
<figure><span class="map"><img src="{{ map.picture }}" alt="map of {{ map.method }}"></span>
<figcaption>{{ label }}<small><b class="on-primary">{{ map.pafl | percent }}</b>
<b class="on-secondary">{{ map.safl | percent }}</b><br>bucket {{ mean | percent }}</small></figcaption></figure>
{% endfor %}
</div>
{% endfor %}
"""


def lowest(study: Study, setting: str) -> Drawing | None:
    """Methods that are at their lowest in the same bucket share its image."""
    view = seen(study, "black")
    places = _lowest(view, setting) if view else {}
    kept = {scene.bucket: scene for scene in scenes(view, setting, list(places))} if view and places else {}
    found: dict[str, list[tuple[Map, float]]] = {}
    for method, (number, mean) in places.items():
        one = next((one for one in kept[number].maps if one.method == method), None) if number in kept else None
        if one and one.picture:
            found.setdefault(number, []).append((one, mean))
    return _drawing(view, setting, kept, found) if view and found else None


def _lowest(view: View, setting: str) -> dict[str, tuple[str, float]]:
    """method -> the bucket with its lowest mean PAFL, and that mean; without controls."""
    scores, found = view.primary, {}
    for method in view.methods:
        place = scores.methods.index(method)
        means = {scores.cells[i][1]: float(scores.means[i, place]) for i in scores.of(setting)}
        means = {number: value for number, value in means.items() if not math.isnan(value)}
        if means and method not in view.controls:
            number = min(means, key=means.__getitem__)
            found[method] = number, means[number]
    return found


def _drawing(view: View, setting: str, kept: dict[str, Scene], found: dict[str, list[tuple[Map, float]]]) -> Drawing:
    most_first = sorted(found, key=lambda number: (-len(found[number]), int(number)))
    groups = [(kept[n], [(_broken(label(one.method)), one, mean) for one, mean in found[n]]) for n in most_first]
    count = sum(map(len, found.values()))
    note = (
        f"{setting} ({question(setting, view.run)}): each method's map of one image from the bucket in which its mean "
        "PAFL is lowest. Below a map: PAFL and SAFL of this map, then the mean PAFL of the bucket, by the definition "
        f"{view.definition}. {OUTLINES}"
    )
    rows = [
        {"method": one.method, "setting": setting, "bucket": n, "shows": bucket(n, view.run), "pafl": one.pafl,
         "safl": one.safl, "bucket_mean": mean}
        for n in most_first for one, mean in found[n]
    ]  # fmt: skip
    return Drawing(note, html=fill(TEMPLATE, groups=groups, count=count, run=view.run), rows=rows)


def _broken(text: str) -> Markup:
    """A name that may break after its underscores."""
    return Markup("_<wbr>").join(text.split("_"))
