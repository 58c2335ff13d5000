"""The command line: each command is a few lines over the functions that do the work."""

from typing import Annotated

import typer

from saliometer import __version__
from saliometer.allocator import keep_memory
from saliometer.cli.audit import audit
from saliometer.cli.bench import bench
from saliometer.cli.explain import explain
from saliometer.cli.identify import identify
from saliometer.cli.listing import list_
from saliometer.cli.pages import report, serve
from saliometer.cli.reproduce import reproduce
from saliometer.cli.runs import compare_definitions, rows, show
from saliometer.cli.train import train

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Measures whether saliency maps tell the truth.\n\n"
    "Start with `saliometer bench`: it scores every quick method on seven models whose reasoning is known, and writes "
    "a report. Your own method joins with `saliometer bench --method my_file.py:my_method`.\n\n"
    "`saliometer audit --model resnet50 --images photos/` says which methods hold up on your model and images.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"saliometer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


app.command()(bench)
app.command()(identify)
app.command()(audit)
app.command()(reproduce)
app.command(name="compare-definitions")(compare_definitions)
app.command()(train)
app.command(name="list")(list_)
app.command()(explain)
app.command()(show)
app.command()(report)
app.command()(serve)
app.command()(rows)


def main() -> None:
    """The entry point of the `saliometer` command; whoever reads its output may stop early, `| head`."""
    keep_memory()
    try:
        app()
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # what rich and click make exit code 1 of
            raise
