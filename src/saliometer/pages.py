"""Which page a folder gets: of one run, of several as one, of a run against another, or of a study."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from saliometer.engine.run import Run
from saliometer.report.page import book_of, put_page
from saliometer.state import is_study, run_in

if TYPE_CHECKING:
    from saliometer.report.book import Book


def written(folders: Sequence[Path], compare: Path | None = None, out: Path | None = None) -> Path:
    """Write the page that is asked for, by default into the first run's folder."""
    first = folders[0]
    several = list(dict.fromkeys(folder.resolve() for folder in folders))
    name = "report-compared" if compare else "report-merged" if len(several) > 1 else "report"
    path = out or first / f"{name}.html"
    if is_study(first) and len(several) == 1 and not compare:
        return put_page(study_book(first), path)
    for folder in (*folders, *([compare] if compare else [])):
        if is_study(folder):
            parts = ", ".join(f"'{one.parent}'" for one in sorted(folder.glob("*/run.json"))[:3])
            raise ValueError(f"'{folder}' is a study, which is neither merged nor compared: name its runs, {parts}")
    run, book = _whole([first, *(one for one in folders[1:] if one.resolve() != first.resolve())])
    if compare:
        from saliometer.report.against import compared

        other, other_book = _whole([compare])
        book = replace(book, compared=compared(run, other, book, other_book))
    return put_page(book, path)


def study_book(folder: Path) -> "Book":
    from saliometer.report.study import book

    return book(folder)


def _whole(folders: Sequence[Path]) -> "tuple[Run, Book]":
    from saliometer.report.merged import merged, named

    runs = [run_in(folder) for folder in folders]
    whole = merged(runs)
    return whole, named(book_of(whole), runs) if len(runs) > 1 else book_of(whole)
