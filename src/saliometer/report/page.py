"""The report: one HTML file that holds everything it shows."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from saliometer.engine.run import Run
from saliometer.files import put

if TYPE_CHECKING:
    from saliometer.report.view import View

FIRST = ("clean", "clean_positive", "authors")  # the order of definitions


def write(run: Run, path: Path | None = None) -> Path:
    """Write the report of a run, by default as report.html in its folder; the file is there in full or not at all."""
    path = path or run.folder / "report.html"
    if path.is_dir():
        raise ValueError(f"'{path}' is a folder: the report wants a file, such as '{path / 'report.html'}'")
    put(path, page(run).encode())
    return path


def page(run: Run) -> str:
    """The report's HTML; what draws it is imported here, so that scoring works without it."""
    from saliometer.report import facts, verdict
    from saliometer.report.figures import figures
    from saliometer.report.templates import environment

    rows = run.rows().filter(pc.field("condition") == "")  # methods as they are; other budgets and seeds stand in rows
    views = _views(run, rows)
    first, *others = views
    drawn = [(one, one.draw(first)) for one in figures()]
    again = [(view, [(one, one.draw(view)) for one in figures() if not one.once]) for view in others]
    return (
        environment()
        .get_template("page.html")
        .render(
            name=run.folder.resolve().name,
            manifest=run.manifest,
            view=first,
            definitions=[view.definition for view in views],
            verdict=verdict.sentences(first),
            figures=[(one, html) for one, html in drawn if html],
            others=[(view, [(one, html) for one, html in some if html]) for view, some in again],
            measured=facts.measured(run, rows, [view.definition for view in views]),
            progress=facts.progress(run),
            failed=facts.failed(run),
            odd=facts.odd(rows),
            provenance=facts.provenance(run),
        )
    )


def _views(run: Run, rows: pa.Table) -> list["View"]:
    from saliometer.report.view import View

    if not len(rows):
        failures = run.failures()
        why = f"; {', '.join(failures)} failed, see '{run.folder / 'failures'}'" if failures else ""
        raise ValueError(
            f"the run '{run.folder}' has no scores yet{why}: run `saliometer bench --out {run.folder}` to its end, "
            "then make the report"
        )
    there = rows.filter(pc.field("metric") == "pafl")["definition"].unique().to_pylist()
    ordered = sorted(there, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return [View(run, rows, definition) for definition in ordered]
