"""A method's name as tables show it: marked as control, ceiling or the user's own."""

from markupsafe import Markup

from saliometer.report.templates import fill
from saliometer.report.view import View
from saliometer.report.words import CONTROLS, kind

TEMPLATE = """
<span class="name {{ role }}{{ " long" if method | length > 24 }}">
{%- for part in method.split("_") %}{% if not loop.first %}_<wbr>{% endif %}{{ part }}{% endfor %}</span>
{%- if role %}
 <span class="badge {{ role }}" title="{{ hint }}">{{ "yours" if role == "own" else role }}</span>
{%- endif %}
"""


def name(view: View, method: str) -> Markup:
    role = view.role(method)
    hint = CONTROLS.get(kind(method), "a control") if role in ("control", "ceiling") else "your method"
    return fill(TEMPLATE, method=method, role=role, hint=hint)
