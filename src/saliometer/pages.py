"""Which page a folder gets: of one run, of several as one, of a run against another, or of a study."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from saliometer.engine.run import Run, run_in
from saliometer.report.page import book_of, put_page
from saliometer.state import is_study

if TYPE_CHECKING:
    from saliometer.report.book import Book


def written(folders: Sequence[Path], compare: Path | None = None, out: Path | None = None) -> Path:
    """Write the page that is asked for, by default into the first run's folder."""
    several = {folder.resolve() for folder in folders}
    name = "report-compared" if compare else "report-merged" if len(several) > 1 else "report"
    return put_page(book_for(folders, compare), out or folders[0] / f"{name}.html")


def book_for(folders: Sequence[Path], compare: Path | None = None) -> "Book":
    """Of a run or study, of several runs as one, or of a run against another."""
    first = folders[0]
    several = {folder.resolve() for folder in folders}
    if is_study(first) and len(several) == 1 and not compare:
        return study_book(first)
    for folder in (*folders, *([compare] if compare else [])):
        if is_study(folder):
            parts = ", ".join(f"'{one.parent}'" for one in sorted(folder.glob("*/run.json"))[:3])
            raise ValueError(f"'{folder}' is a study, which is neither merged nor compared: name its runs, {parts}")
    run, book = _whole([first, *(one for one in folders[1:] if one.resolve() != first.resolve())])
    if compare:
        from saliometer.report.against import compared

        other, other_book = _whole([compare])
        book = replace(book, compared=compared(run, other, book, other_book))
    return book


def study_book(folder: Path) -> "Book":
    from saliometer.report.study import book

    return book(folder)


def _whole(folders: Sequence[Path]) -> "tuple[Run, Book]":
    from saliometer.report.merged import merged, named

    runs = [run_in(folder) for folder in folders]
    whole = merged(runs)
    return whole, named(book_of(whole), runs) if len(runs) > 1 else book_of(whole)
