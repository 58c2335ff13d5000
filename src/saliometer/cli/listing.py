"""`saliometer list`: what there is."""

import json
from typing import Annotated

import typer

from saliometer.cli.guard import plainly
from saliometer.cli.options import AsJson


@plainly
def list_(
    what: Annotated[
        str, typer.Argument(help="methods, metrics, tasks, models or settings; or one name, for all about it.")
    ] = "methods",
    as_json: AsJson = False,
) -> None:
    """List what there is, with a line on each: `saliometer list`, `saliometer list grad_cam`."""
    from saliometer.catalogue import catalogue, print_catalogue

    entries = catalogue(what)
    if as_json:
        print(json.dumps(entries, indent=1))
    else:
        print_catalogue(what, entries)
