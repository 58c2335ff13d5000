"""Cards of the causal study: a method's maps of the same images by several groups of models, its numbers below."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from saliometer.report.figures import Drawing
from saliometer.report.figures._pictures import image_uri, map_png
from saliometer.studies._claims import MissingError

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence
    from saliometer.studies._yona_pictures import Pictures
    from saliometer.studies.yona import Study

PAPER = "Yona & Greenfeld, Figure"
MORE = "More figures of the paper"
STYLE = """
.yona { display: grid; gap: 1.2rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, var(--card)), 1fr)); }
.yona figure { margin: 0; }
.yona figcaption { font-size: 0.78rem; line-height: 1.35; margin-top: 0.3rem; overflow-wrap: anywhere; }
.yona figcaption b.method { display: block; font-size: 0.95rem; }
.yona .maps-of { display: grid; gap: 3px; }
.yona .maps-of span { font-size: 0.68rem; line-height: 1.15; color: var(--soft); text-align: center; align-self: end; }
.yona .maps-of small { display: block; text-align: center; line-height: 1.1; font-size: 0.64rem; }
.yona img, .yona i { display: block; width: 100%; image-rendering: pixelated; border: 1px solid var(--rule); }
.yona i { background: center / 100% 100%; }
.yona .sensitive { color: var(--on-primary); font-weight: 600; }
.yona .insensitive { color: var(--fail); font-weight: 600; }
.yona .undecided { color: var(--soft); font-weight: 600; }
"""
GROUPS = {
    "random": "random", "t": "digit model", "half": "half model", "labels": "shuffled labels", "t1": "t1 (shape)",
    "t2": "t2 (digit)", "pretrained": "pretrained", "pairs": "fine-tuned", "pairs2": "other group",
}  # fmt: skip
Numbers = Callable[["Evidence", str], Sequence[tuple[str, str]]]  # a method's, by name


def cards(
    study: "Study", scene: str, groups: Mapping[str, str], numbers: Numbers, *, images: int, wide: bool = False,
    methods: Sequence[str] = (), told: Callable[["Pictures", str, int], str] | None = None,
) -> Drawing | None:  # fmt: skip
    """`groups` as the scene calls them -> their word; `told` is said under a group's map of an image."""
    pictures = study.pictures(scene)
    if pictures is None or not pictures.maps:
        return None
    e = study.evidence
    wanted = [name for name in methods or e.methods if name in pictures.maps]
    controls = [] if methods else [name for name in e.controls if name in pictures.maps]
    there = {name: word for name, word in groups.items() if name in pictures.predictions}
    places = range(min(images, len(pictures.images)))
    named = [f"yona-{scene}-{place}" for place in places]
    ratio = f"{pictures.images.shape[2]} / {pictures.images.shape[1]}"
    photos = "".join(
        f".yona .{name} {{ background-image: url({image_uri(pictures.images[place])}); aspect-ratio: {ratio}; }}\n"
        for place, name in zip(places, named, strict=True)
    )

    def grid(some: Sequence[str]) -> Markup:
        made = [_card(pictures, name, there, named, _lines(e, name, numbers), told) for name in some]
        width = f"{6.5 * (len(there) + 1) if wide else 3.9 * (len(there) + 1):g}rem"
        return Markup('<div class="yona" style="--card:{}">{}</div>').format(width, Markup("").join(made))

    html = Markup("<style>{}</style>{}").format(Markup(STYLE + photos), grid(wanted))
    if controls:
        html += Markup("<details><summary>{} controls</summary>{}</details>").format(len(controls), grid(controls))
    rows = [{"method": name, **dict(_lines(e, name, numbers))} for name in (*wanted, *controls)]
    return Drawing(html=html, rows=rows)


def _lines(e: "Evidence", method: str, numbers: Numbers) -> list[tuple[str, str]]:
    try:
        return list(numbers(e, method))
    except MissingError as missing:
        return [("", str(missing))]


def _card(
    pictures: "Pictures", method: str, groups: Mapping[str, str], photos: Sequence[str],
    lines: Sequence[tuple[str, str]], told: Callable[["Pictures", str, int], str] | None,
) -> Markup:  # fmt: skip
    cells = [Markup("<span>image</span>"), *(Markup("<span>{}</span>").format(word) for word in groups.values())]
    for place, photo in enumerate(photos):
        cells.append(Markup('<div><i class="{}" role="img" aria-label="image {}"></i></div>').format(photo, place + 1))
        for group, word in groups.items():
            found = pictures.maps[method][group][place]
            words = [told(pictures, group, place)] if told else []
            words += [] if found.any() else ["no mass"]
            said = Markup("<small>{}</small>").format(", ".join(words)) if words else Markup("")
            cells.append(
                Markup('<div><img src="{}" alt="{}: {}, image {}">{}</div>').format(
                    map_png(found), method, word, place + 1, said
                )
            )
    numbers = Markup("<br>").join(_line(name, text) for name, text in lines)
    return Markup(
        '<figure><div class="maps-of" style="grid-template-columns:repeat({},1fr)">{}</div>'
        '<figcaption><b class="method">{}</b>{}</figcaption></figure>'
    ).format(len(groups) + 1, Markup("").join(cells), method, numbers)


def _line(name: str, text: str) -> Markup:
    word = text.partition(",")[0]
    if word in ("sensitive", "insensitive", "undecided"):
        return Markup('{}: <span class="{}">{}</span>').format(name, word, text)
    return Markup("{}: {}").format(name, text) if name else Markup("{}").format(text)


def energy(e: "Evidence", task: str, method: str) -> list[tuple[str, str]]:
    """E with its interval and the verdict."""
    one = e.energy(task, method)
    effect = f"{one.effect.value:.3f} [{one.effect.low:.3f}, {one.effect.high:.3f}], E/B {one.share:.2f}"
    return [(f"E on {task}", effect), (f"verdict on {task}", str(e.verdict(task, method)))]


def shares(e: "Evidence", task: str, groups: Sequence[str], method: str) -> str:
    """The focus of several groups, in their order."""
    return " / ".join(f"{e.focus(task, group, method).value:.2f}" for group in groups)


def predicted(task_of: Mapping[str, str]) -> Callable[["Pictures", str, int], str]:
    """What a group's model takes an image for; `task_of` says whose classes its answer is read by."""

    def said(pictures: "Pictures", group: str, place: int) -> str:
        task, answer = task_of[group], int(pictures.predictions[group][place])
        names = pictures.classes.get(task, ())
        return names[answer] if answer < len(names) else str(answer)

    return said
