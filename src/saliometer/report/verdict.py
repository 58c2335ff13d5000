"""The verdict: plain sentences from the standings."""

from collections.abc import Sequence

from markupsafe import Markup

from saliometer.report.templates import fill, percent
from saliometer.report.view import View
from saliometer.report.words import kind, listed

LEAD = """
{% if leaders | length > 1 %}
{{ names }} tie for the lead: on average {{ range }}&nbsp;% of their attribution lies on the objects that decide
{%- else %}
{{ names }} leads: on average {{ leaders[0].mean.value | percent }}&nbsp;% of its attribution lies on the objects that
decide
{%- if not single %} (95&nbsp;% interval {{ leaders[0].mean.low | percent }} to {{ leaders[0].mean.high | percent }})
{%- endif %}
{%- endif %}
{%- if next %}, ahead of <b>{{ next.method }}</b> with {{ next.mean.value | percent }}&nbsp;%{% endif %}.
"""

WORST = """
{% set first = leaders[0] %}
In {{ "its worst bucket" if leaders | length == 1 else first.method ~ "’s worst bucket" }}
({{ first.worst_cell[0] }}, images that show {{ first.worst_cell[1] | bucket(run) }}) that
{{ "is" if first.worst.value >= first.mean.value else "falls to" }} {{ first.worst.value | percent }}&nbsp;%
{%- if not floors %}, and there was no control to compare with
{%- elif not unbeaten %}; every ranked method beats the controls {{ floors | join(" and ") }}
{%- else %}; {{ unbeaten | join(", and ") }}
{%- endif %}.
"""

FIRST_LOOK = "One image of each kind is few: this is a first look, no verdict."
FLOOR_WORDS = {"random": "random noise", "edge": "the edges of the image, which no model had a part in"}


def sentences(view: View) -> list[Markup]:
    """Who leads or ties; what the worst bucket says and who is no better than a control."""
    ranked = [standing for standing in view.standings if standing.rank]
    if not ranked:
        return [Markup(_nobody(view))]
    leaders = [standing for standing in ranked if standing.rank == 1]
    rest = ranked[len(leaders) :]
    ends = dict.fromkeys(percent(one.mean.value) for one in (leaders[-1], leaders[0]))
    lead = fill(
        LEAD,
        leaders=leaders,
        names=_names([standing.method for standing in leaders]),
        range=" to ".join(ends),
        next=rest[0] if rest else None,
        single=view.single,
    )
    floors = [m for m in view.controls if kind(m) in FLOOR_WORDS and m in view.primary.methods]
    unbeaten = [_no_better(control, methods) for control, methods in view.unbeaten().items()]
    said = [lead, fill(WORST, leaders=leaders, floors=floors, unbeaten=unbeaten, run=view.run)]
    return [*said, Markup(FIRST_LOOK)] if view.single else said


def _nobody(view: View) -> str:
    if not view.primary.cells:
        return "No image of this run shows an object that decides, so there is nothing to rank: ask for more images."
    if all(standing.control for standing in view.standings) and not view.lost:
        return "Only controls were run, so there is nothing to rank."
    return "No method has a score in every bucket, so none is ranked: see the warnings."


def _no_better(control: str, methods: Sequence[str]) -> Markup:
    verb = "is" if len(methods) == 1 else "are"
    what = FLOOR_WORDS[kind(control)]
    return Markup("{} {} no better than {}").format(_names(list(methods)), verb, what)


def _names(methods: list[str]) -> Markup:
    bold = [Markup("<b>{}</b>").format(name) for name in listed(methods)]
    return bold[0] if len(bold) == 1 else Markup("{} and {}").format(Markup(", ").join(bold[:-1]), bold[-1])
