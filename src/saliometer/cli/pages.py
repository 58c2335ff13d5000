"""`saliometer report` and `serve`: runs as pages."""

from pathlib import Path
from typing import Annotated

import typer

from saliometer.cli.guard import plainly, say


@plainly
def report(
    run: Annotated[
        list[Path],
        typer.Argument(
            help="A run's or study's folder; several runs that measured the same go on one page.", show_default=False
        ),
    ],
    compare: Annotated[
        Path | None, typer.Option(help="Another run: where this one is better, worse, or no different.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; by default report.html in the (first) run's folder.")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write a run's report again, from its rows and thumbnails alone; or one of several runs.

    - `saliometer report RUN --open` writes RUN/report.html and shows it;
    - `saliometer report RUN1 RUN2` puts the methods of both in one scoreboard (RUN1/report-merged.html), where both
      measured the same: task or images, weights, metrics, target, seed;
    - `saliometer report RUN --compare OTHER` adds each method's difference to another run, of another model, images or
      version (RUN/report-compared.html).
    """
    from saliometer.pages import written

    page = written(run, compare, out)
    print(page)
    if open_:
        _open(page.resolve().as_uri())


@plainly
def serve(
    runs: Annotated[Path, typer.Argument(help="A folder with runs in it, at any depth.")] = Path("runs"),
    port: Annotated[int, typer.Option(help="The port to listen on; 0 for any that is free.")] = 8420,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """List every run in a folder on a page of this machine, with search and a report of each.

    `saliometer serve runs/` answers on http://127.0.0.1:8420, to this machine alone. Reports are made when they are
    asked for, and again when rows have come since. Ctrl-C stops it.
    """
    from saliometer.serve import serve as run_server

    run_server(runs, port, lambda url: _open(url) if open_ else None)


def _open(url: str) -> None:
    """Show a page in the browser; without one, say where it is."""
    import webbrowser

    try:
        shown = webbrowser.open(url)
    except webbrowser.Error:
        shown = False
    if not shown:
        say(f"No browser was found here: open {url} in one.")
