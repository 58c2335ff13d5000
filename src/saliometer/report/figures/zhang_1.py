"""Figure 1 of the ten-methods study: images on which the best and the worst method score highest and lowest."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from saliometer.report.figures import Drawing, _zhang, figure
from saliometer.report.figures._overlay import map_uri, photo_uri

if TYPE_CHECKING:
    from saliometer.studies._zhang_figures import Case
    from saliometer.studies.zhang import Study

STYLE = """
.cases { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 29rem), 1fr)); gap: 1rem 1.5rem; }
.cases figure { margin: 0; }
.cases figcaption { font-size: 0.85rem; margin-bottom: 0.25rem; }
.cases div { display: grid; grid-template-columns: repeat(7, 1fr); gap: 4px; }
@media (max-width: 560px) { .cases div { grid-template-columns: repeat(4, 1fr); } }
.cases span { font-size: 0.68rem; line-height: 1.2; color: var(--soft); text-align: center; }
.cases i { display: block; aspect-ratio: 1; background: center / 100% 100%; margin-bottom: 2px; }
.cases img { display: block; width: 100%; height: 100%; }
.cases .own { color: var(--ink); font-weight: 600; }
.cases .own i { outline: 2px solid var(--method); }
"""


@figure("On which images do methods score best and worst?", of="zhang", order=50, paper="Zhang et al., Figure 1")
def zhang_1(study: "Study") -> Drawing | None:
    cases = study.cases()
    if not cases:
        return None
    note = (
        "For each metric the methods with the best and the worst mean, Fake-CAM aside, and for each of the two the "
        "images on which it scores highest and lowest; its own map is outlined, others stand beside it. Bright is what "
        "a map marks. Only images of which the run kept a picture can be shown."
    )
    photos = {case.image: f"photo-{place}" for place, case in enumerate({c.image: c for c in cases}.values())}
    rules = {photos[case.image]: photo_uri(case.photo) for case in cases}
    style = STYLE + "".join(f".cases .{name} {{ background-image: url({uri}); }}\n" for name, uri in rules.items())
    metrics = dict.fromkeys(case.metric for case in cases)
    groups = [
        _group([case for case in cases if case.metric == metric], photos, not i) for i, metric in enumerate(metrics)
    ]
    html = Markup("<style>{}</style>{}").format(Markup(style), Markup("").join(groups))
    told = ("metric", "place", "method", "word", "score", "image")
    return Drawing(note, html=html, rows=[{name: getattr(case, name) for name in told} for case in cases])


def _group(cases: Sequence["Case"], photos: Mapping[str, str], first: bool) -> Markup:
    """One metric's; all but the first are folded away."""
    means = {case.place: case.method for case in cases}
    return Markup('<details{}><summary>{}: best {}, worst {}</summary><div class="cases">{}</div></details>').format(
        " open" if first else "",
        _zhang.named(cases[0].metric),
        means["best"],
        means["worst"],
        Markup("").join(_case(case, photos[case.image]) for case in cases),
    )


def _case(case: "Case", photo: str) -> Markup:
    cells = [Markup('<span><i class="{}"></i>image</span>').format(photo)]
    cells += [
        Markup('<span class="{}"><i class="{}"><img src="{}" alt=""></i>{}</span>').format(
            "own" if name == case.method else "", photo, map_uri(shades), name
        )
        for name, shades in case.maps.items()
    ]
    words = Markup("<figcaption><b>{}</b>, {} mean; {} score, {:.1f}: {}</figcaption>").format(
        case.method, case.place, case.word, case.score, case.image
    )
    return Markup("<figure>{}<div>{}</div></figure>").format(words, Markup("").join(cells))
