"""`saliometer show`, `rows` and `compare-definitions`: what a run's folder says, in the terminal."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saliometer.cli.guard import plainly
from saliometer.cli.options import AsJson, RunFolder


@plainly
def show(run: RunFolder, as_json: AsJson = False) -> None:
    """Print what a run found: the verdict, the scoreboard, warnings and failures.

    - `saliometer show RUN` shows a benchmark, an audit, or a study with its claims, finished or not;
    - `saliometer show RUN | less` and `> file.txt` give plain text, `--json` the same for programs.
    """
    from saliometer import show as show_bench
    from saliometer import show_audit, show_identify, show_study
    from saliometer.engine.identify import Identified
    from saliometer.engine.judged import Judged
    from saliometer.engine.run import run_in
    from saliometer.state import is_study, outcome_of

    view: Any = show_study
    about: tuple[Any, ...] = (run,)
    if not is_study(run):
        outcome = outcome_of(run_in(run))
        view = show_audit if isinstance(outcome, Judged) else show_bench
        view = show_identify if isinstance(outcome, Identified) else view
        about = outcome, run / "report.html" if (run / "report.html").is_file() else None
    if as_json:
        print(json.dumps(view.as_dict(*about), indent=1))
    else:
        view.show(*about)


@plainly
def rows(
    run: RunFolder,
    sql: Annotated[str | None, typer.Option(help="A query over the table `rows`.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the result here as CSV.")] = None,
    limit: Annotated[int, typer.Option(help="At most this many rows of the result; 0 for all.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Look into a run's rows: `saliometer rows RUN --sql "select method, avg(value) from rows group by all"`."""
    from saliometer.engine.run import run_in
    from saliometer.show import print_table, query

    found = query(run_in(run).rows(), sql, limit)
    if csv:
        from pyarrow.csv import write_csv

        csv.parent.mkdir(parents=True, exist_ok=True)
        write_csv(found, csv)
        print(f"Wrote {found.num_rows} rows to {csv}.")
    elif as_json:
        print(json.dumps(found.to_pylist(), indent=1, default=str))
    else:
        print_table(found)


@plainly
def compare_definitions(
    run: RunFolder,
    metric: Annotated[list[str], typer.Option(help="Only these metrics; repeat for several.")] = [],  # noqa: B006
    as_json: AsJson = False,
) -> None:
    """Show how the order of methods moves between the definitions of a metric that a run holds.

    Make such a run with `saliometer audit --normalisation abs_max_minmax --normalisation signed_joint_minmax`, with one
    metric asked for twice (`--metric "average_drop(space=raw)" --metric "average_drop(space=normalised)"`), or with
    `saliometer bench --definition clean --definition authors`.
    """
    from saliometer.engine.run import run_in
    from saliometer.judgement import columns, moves
    from saliometer.registry import unknown
    from saliometer.show_audit import moves_as_dicts, show_moves

    every = columns(run_in(run).rows())
    names = sorted({column.metric for column in every})
    for name in metric:
        if name not in names:
            raise LookupError(f"in the run '{run}' {unknown('metric', name, names)}")
    found = moves([column for column in every if not metric or column.metric in metric])
    if not found:
        which = " and ".join(metric) or "each metric"
        raise ValueError(f"the run '{run}' holds one definition of {which}: run it with several, see --help")
    if as_json:
        print(json.dumps(moves_as_dicts(found), indent=1))
    else:
        show_moves(found)
