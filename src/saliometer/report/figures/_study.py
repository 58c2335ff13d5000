"""Parts of SMERF's study as figures see them: a view of each, of the paper's methods and the ceiling."""

from dataclasses import replace
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from saliometer.report.figures import Drawing
from saliometer.report.view import FEWER, View
from saliometer.report.words import kind
from saliometer.studies._smerf_paper import SHORT
from saliometer.studies._smerf_study import Study

DEFINITIONS = ("authors", "clean")  # the first that a run has
OVERLAP = "More figures of the paper: overlap in the place of focus"  # groups, folded away
TOYS = "More figures of the paper: what the metrics measure"
LOOKED_AT = "More figures of the paper: images and maps"
BUCKETS = "More figures of the paper: bucket by bucket"
NETWORKS = "More figures of the paper: other networks"
NOISE = "More figures of the paper: noise behind the objects"
NATURAL = "More figures of the paper: photographs behind the objects"
_seen: WeakKeyDictionary[Study, dict[str, View | None]] = WeakKeyDictionary()


def seen(study: Study, part: str) -> View | None:
    """A part by the definition of the paper's values, where it has that; None where it was not run."""
    kept = _seen.setdefault(study, {})
    if part not in kept:
        kept[part] = _view(study, part) if part in study.runs else None
    return kept[part]


def _view(study: Study, part: str) -> View | None:
    run, rows = study.runs[part], study.rows(part)
    there = rows.filter(pc.field("metric") == "pafl")["definition"].unique().to_pylist()
    if not there:
        return None
    known = run.manifest["methods"]
    chosen = [name for name in known if name in SHORT or kind(name) == "oracle" or known[name]["own"]]
    rows = rows.filter(pc.field("method").isin(chosen if set(chosen) & set(SHORT) else list(known)))
    return View(run, rows, next((one for one in DEFINITIONS if one in there), there[0]), FEWER)


def told(view: View, drawing: Drawing | None, lead: str = "") -> Drawing | None:
    """With words before its note, and the definition named after it."""
    if drawing is None:
        return None
    named = "" if "definition" in drawing.note else f" By the definition {view.definition}."
    return replace(drawing, note=f"{lead} {drawing.note}{named}".strip())
