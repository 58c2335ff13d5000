"""The report: one HTML file that holds everything it shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import saliometer
from saliometer.engine.run import Run
from saliometer.files import put

if TYPE_CHECKING:
    from saliometer.report.book import Book, Head, Pictures

HERE = Path(__file__).parent
SCRIPTS = (
    "data",
    "theme",
    "scoreboard",
    "maps",
    "gallery",
    "viewer",
    "statistics",
    "charts",
    "compare",
    "against",
    "print",
    "links",
)


def write(run: Run, path: Path | None = None) -> Path:
    """Write the report of a run, by default as report.html in its folder; the file is there in full or not at all."""
    return put_page(book_of(run), path or run.folder / "report.html")


def put_page(book: "Book", path: Path) -> Path:
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder: the report wants a file, such as '{path / 'report.html'}'")
    try:
        put(path, page(book).encode(errors="backslashreplace"))  # a folder may have any bytes for a name
    except OSError as error:
        raise ValueError(f"cannot write '{path}' ({error.strerror}): name another place with --out") from error
    return path


def book_of(run: Run) -> "Book":
    """What draws it is imported here, so that scoring works without it."""
    from saliometer.report import audit, bench

    kind = run.manifest["request"].get("kind")
    if kind == "identify":
        raise ValueError(f"'{run.folder}' is a run of identify, which has no page: `saliometer show` prints its table")
    if kind == "sanity":
        raise ValueError(f"'{run.folder}' is part of a study: its page is that of '{run.folder.parent}'")
    return audit.book(run) if kind == "audit" else bench.book(run)


def page(book: "Book") -> str:
    from markupsafe import Markup

    from saliometer.report.pack import script
    from saliometer.report.templates import environment

    drawn = any(one.drawing.charts for one in book.figures)
    wanted = drawn or book.samples or book.compared
    vendor = (HERE / "vendor" / "echarts.min.js").read_text(encoding="utf-8") if wanted else ""
    own = "\n".join((HERE / "scripts" / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    return (
        environment()
        .get_template("page.html")
        .render(
            book=book,
            version=saliometer.__version__,
            stages=_stages(book),
            ceiling=_ceiling(book),
            drawn={one.id for one in book.figures},
            folded=_folded(book),
            data=script(_data(book)),
            style=Markup((HERE / "style.css").read_text(encoding="utf-8")),
            vendor=Markup(vendor),
            scripts=Markup(own),
        )
    )


def _stages(book: "Book") -> dict[str, list[str]]:
    """Columns that stand there under more than one definition, with those to choose between."""
    found: dict[str, dict[str, None]] = {}
    for head in book.heads:
        found.setdefault(head.name, {})[head.stage] = None
    return {name: list(stages) for name, stages in found.items() if len(stages) > 1}


def _folded(book: "Book") -> dict[str, list[Any]]:
    """Groups of figures that are folded away, in the order of their first."""
    found: dict[str, list[Any]] = {}
    for one in book.figures:
        if one.figure.group and not one.definition:
            found.setdefault(one.figure.group, []).append(one)
    return found


def _ceiling(book: "Book") -> float | None:
    """The oracle's mean in the first column, where there is one."""
    oracle = [method.name for method in book.methods if method.role == "ceiling"]
    known = [head.cells[name].value for head in book.heads[:1] for name in oracle if name in head.cells]
    return known[0] if known else None


def _data(book: "Book") -> dict[str, Any]:
    """What the page's scripts read."""
    import numpy as np

    from saliometer.report.pack import packed

    groups = list(dict.fromkeys(sample.group for sample in book.samples))
    measured = [(head, head.values) for head in book.heads if head.values is not None]
    values = np.stack([one for _, one in measured]) if measured else np.zeros((0, 0, 0), np.float32)
    return {
        "kind": book.kind,
        "name": book.name,
        "methods": [vars(method) for method in book.methods],
        "heads": [_head(head) for head, _ in measured],
        "samples": [sample.id for sample in book.samples],
        "groups": groups,
        "group": [groups.index(sample.group) for sample in book.samples],
        "values": packed(values.astype(np.float32)),
        "pictures": _pictures(book.pictures) if book.pictures else None,
        "charts": {
            f"{one.id}-{place}": {"option": chart.option, "rows": list(chart.rows)}
            for one in book.figures
            for place, chart in enumerate(one.drawing.charts)
        },
        "pictured": {one.id: list(one.drawing.rows) for one in book.figures if one.drawing.rows},
        "compared": book.compared.data() if book.compared else None,
    }


def _head(head: "Head") -> dict[str, Any]:
    return {
        "metric": head.metric, "definition": head.definition, "name": head.name, "better": head.better,
        "kind": head.kind, "share": head.share,
    }  # fmt: skip


def _pictures(pictures: "Pictures") -> dict[str, Any]:
    from saliometer.report.pack import COLUMNS, packed, sheet

    _, height, width, _ = pictures.photos.shape
    return {
        "samples": list(pictures.samples),
        "captions": list(pictures.captions),
        "photos": {"sheet": sheet(pictures.photos), "columns": COLUMNS, "height": height, "width": width},
        "maps": {method: packed(maps) for method, maps in pictures.maps.items()},
        "outlines": [[vars(one) for one in some] for some in pictures.outlines],
    }
