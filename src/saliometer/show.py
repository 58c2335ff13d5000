"""What the command line shows of a benchmark: tables with rich."""

import io
import math
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from saliometer.registry import methods
from saliometer.summary import Estimate, Standing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from saliometer.engine.bench import Outcome
    from saliometer.engine.identify import Identified
    from saliometer.engine.judged import Judged
    from saliometer.report.view import View

PIPED = 1000  # columns, so that no line of a pipe or file is broken
NOTE = (
    "Mean over buckets, each of equal weight, ± half of the 95 % interval. Methods that share a rank (1=) cannot be "
    "told apart by it."
)

MODELS = (
    "Of up to {} models of a setting: the mean is over all of them, its ± over images. Models ±: half of the 95 % "
    "interval for other trainings of the same networks (Student's t)."
)


def percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def screen() -> "Console":
    """The terminal; what is piped is plain text of whole lines, however long, unless COLUMNS says how wide."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without arrows still gets the numbers
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPED)


def show(outcome: "Outcome", page: Path | None) -> None:
    """The verdict, the ranked table, what went wrong, and where the report is."""
    console = screen()
    view = _view(outcome)
    show_start(outcome, _verdict(view), console)
    if view:
        console.print(_table(outcome, view.standings))
        console.print(f"[dim]{NOTE}[/dim]", highlight=False, soft_wrap=True)
        if several := outcome.over_models():
            count = max(one.count for one in several.values())
            console.print(f"[dim]{MODELS.format(count)}[/dim]", highlight=False, soft_wrap=True)
    show_end(outcome, page, console)


def show_start(outcome: "Outcome | Judged", said: Sequence[str], console: "Console") -> None:
    """Whether the run is at its end, and the verdict."""
    from rich.markup import escape

    from saliometer.report.facts import unfinished

    if late := unfinished(outcome.run):
        console.print(f"[yellow]Not finished:[/yellow] {escape(late)}", highlight=False, soft_wrap=True)
    for sentence in said:
        console.print(escape(sentence), highlight=False, soft_wrap=True)
    if late or said:
        console.print()


def _view(outcome: "Outcome") -> "View | None":
    """The run as its report sees it; none before there are rows."""
    from saliometer.report.view import View

    return View(outcome.run, outcome.run.rows(), outcome.definition()) if outcome.run.finished_any() else None


def _verdict(view: "View | None") -> list[str]:
    """The report's sentences as plain text."""
    from saliometer.report.verdict import sentences

    return [sentence.striptags().replace("\xa0", " ") for sentence in sentences(view)] if view else []


def _table(outcome: "Outcome", found: Sequence[Standing]) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    title = f"PAFL x100, {outcome.definition()}, {outcome.run.manifest['request']['region']}: attribution on the "
    table = Table(title=f"{title}objects that decide", title_justify="left", box=None, padding=(0, 1, 0, 0))
    extra = _extra(outcome, found)
    groups = [group for group in ("simple", "complex") if any(not math.isnan(vars(s)[group].value) for s in found)]
    for name in ("rank", "method", "mean ± 95 %", "worst", "in bucket", *groups, *extra):
        left, wide = name in ("method", "in bucket"), name == "method"
        table.add_column(
            name, justify="left" if left else "right", overflow="fold", no_wrap=not wide, min_width=18 if wide else None
        )
    for s in found:
        half = max(s.mean.high - s.mean.value, s.mean.value - s.mean.low)
        table.add_row(
            _rank(s, found), escape(s.method), f"{percent(s.mean.value)} ± {percent(half)}", percent(s.worst.value),
            " ".join(s.worst_cell), *(percent(vars(s)[group].value) for group in groups),
            *(column.get(s.method, "") for column in extra.values()), style="dim" if s.control else None,
        )  # fmt: skip
    return table


def _rank(standing: Standing, every: Sequence[Standing]) -> str:
    if not standing.complete:
        return "incomplete"
    if standing.control:
        return "ceiling" if standing.method == "oracle" else "control"
    return f"{standing.rank}{'=' * (sum(other.rank == standing.rank for other in every) > 1)}"


def show_end(outcome: "Outcome | Judged | Identified", page: Path | None, console: "Console") -> None:
    """What went wrong, what was left out, and where everything is."""
    from rich.markup import escape

    for line in outcome.problems():
        console.print(f"[yellow]Warning:[/yellow] {escape(line)}", highlight=False, soft_wrap=True)
    for name, message in outcome.left_out.items():
        console.print(f"Left out: {escape(name)}: {escape(message)}", highlight=False, soft_wrap=True)
    for name, message in outcome.failed.items():
        place = outcome.run.folder / "failures"
        console.print(f"[red]Failed:[/red] {escape(name)}: {escape(message)} (tracebacks in {place}/)", soft_wrap=True)
    console.print(f"Run:    {escape(str(outcome.run.folder))}", soft_wrap=True)
    if page is not None:
        console.print(f"Report: {escape(str(page))}", soft_wrap=True)


def _extra(outcome: "Outcome", found: Sequence[Standing]) -> dict[str, dict[str, str]]:
    """Columns that were asked for: the score at an equal budget of passes, the spread over a method's own seeds."""
    columns: dict[str, dict[str, str]] = {}
    own = {standing.method: standing.mean.value for standing in found}
    seeds = [condition for condition in outcome.conditions() if condition.startswith("seed")]
    for condition in outcome.conditions():
        if condition.startswith("budget"):
            passes = condition.removeprefix("budget(").removesuffix(")")
            cheap = {name: value for name, value in own.items() if _passes(name) <= int(passes)}
            both = cheap | outcome.under(condition)
            columns[f"{passes} passes"] = {name: percent(value) for name, value in both.items()}
    if seeds:
        scores = [own, *(outcome.under(seed) for seed in seeds)]
        drawn = set(own).intersection(*scores)
        columns["seed ±"] = {m: percent(statistics.stdev(one[m] for one in scores)) for m in drawn}
    if several := outcome.over_models():
        columns["models ±"] = {m: percent(one.models.high - one.models.value) for m, one in several.items()}
    return columns


def _passes(method: str) -> float:
    """What a method of ours costs by default; unknown for the user's own."""
    entry = methods.get(method.partition("(")[0])
    return entry.facts.passes if entry else math.inf


def as_dict(outcome: "Outcome", page: Path | None) -> dict[str, Any]:
    """The same for machines; undefined numbers are null."""
    from saliometer.report.facts import progress

    def plain(value: Any) -> Any:
        if isinstance(value, Estimate):
            return {name: plain(part) for name, part in vars(value).items()}
        return None if isinstance(value, float) and math.isnan(value) else value

    view = _view(outcome)
    found = view.standings if view else []
    return {
        "run": str(outcome.run.folder),
        "report": str(page) if page else None,
        "finished": progress(outcome.run).finished,
        "verdict": _verdict(view),
        "metric": "pafl",
        "definition": outcome.definition(),
        "standings": [{name: plain(value) for name, value in vars(s).items()} for s in found],
        "conditions": {
            name: {method: plain(value) for method, value in outcome.under(name).items()}
            for name in (outcome.conditions() if found else ())
        },
        "over_models": {
            method: {name: plain(value) for name, value in vars(one).items()}
            for method, one in (outcome.over_models() if found else {}).items()
        },
        "failed": outcome.failed,
        "left_out": outcome.left_out,
        "warnings": outcome.problems(),
    }


def query(rows: pa.Table, sql: str | None, limit: int) -> pa.Table:
    """A query over `rows` with DuckDB; all of them without one."""
    import duckdb

    if limit < 0:
        raise ValueError(f"--limit {limit}: wanted 1 or more, or 0 for all")
    defined = pc.if_else(pc.is_nan(rows["value"]), pa.scalar(None, pa.float64()), rows["value"])
    rows = rows.set_column(rows.column_names.index("value"), "value", defined)  # SQL has a word for undefined: null
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        try:
            found = connection.sql(sql or "select * from rows")
            if found is None:
                raise ValueError(f"--sql '{sql}' returns no table: wanted a select over the table `rows`")
            return (found.limit(limit) if limit else found).to_arrow_table()
        except duckdb.Error as error:
            raise ValueError(f"--sql: {error}") from error


def _cell(value: object) -> str:
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def print_table(found: pa.Table, most: int = 40) -> None:
    from rich.markup import escape
    from rich.table import Table

    console = screen()
    table = Table()
    same = [name for name in found.column_names if name != "value" and len(pc.unique(found[name])) == 1]
    if len(found.column_names) > 8:  # all columns of rows: what is the same everywhere is said once
        console.print(", ".join(f"{name} {found[name][0].as_py()}" for name in same if found[name][0].as_py()))
        found = found.drop_columns(same)
    for name in found.column_names:
        table.add_column(escape(name))
    for row in found.slice(0, most).to_pylist():
        table.add_row(*(escape(_cell(value)) for value in row.values()))
    console.print(table)
    if found.num_rows > most:
        print(f"{most} of {found.num_rows} rows; --csv FILE writes them all, --sql chooses.")
