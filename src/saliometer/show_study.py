"""What the command line shows of a paper's study: its claims, and how far each of its runs is."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saliometer.engine.run import opened
from saliometer.report.facts import progress
from saliometer.show import screen

if TYPE_CHECKING:
    from rich.console import Console

WORDS = {True: "[green]holds[/green]", False: "[red]fails[/red]", None: "[dim]open[/dim]"}


def as_dict(folder: Path) -> dict[str, Any]:
    """A study's claims, and the state of its parts."""
    parts = [_part(path.parent) for path in sorted(folder.glob("*/run.json"))]
    return {"run": str(folder), **_told(folder), "claims": _claims(folder, parts), "parts": parts}


def show(folder: Path) -> None:
    from rich.markup import escape

    console, told = screen(), as_dict(folder)
    console.print(escape(f"The study {told['study']} at scale {told['scale']}."), highlight=False)
    show_claims(told["claims"], console)
    console.print()
    for part in told["parts"]:
        state = (
            "finished" if part["finished"] else f"[yellow]not finished[/yellow], {part['scored']} of {part['total']}"
        )
        failed = f", [red]{part['failed']} failed[/red]" * bool(part["failed"])
        error = f"[red]cannot be read[/red]: {escape(part['error'])}" if part["error"] else ""
        console.print(f"{escape(part['name'])}: {error or state + failed}", highlight=False, soft_wrap=True)
    console.print(f"Run:    {escape(str(folder))}", soft_wrap=True)


def show_claims(claims: Sequence[dict[str, Any]], console: "Console") -> None:
    from rich.markup import escape
    from rich.table import Table

    if not claims:
        console.print("No part of it is finished, so no claim can be judged yet.")
        return
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("", "verdict", "claim", "paper", "ours"):
        table.add_column(name, overflow="fold", justify="left")
    for claim in claims:
        said = "; ".join(filter(None, (claim["ours"], claim["why"])))
        words = (escape(text) for text in (claim["text"], claim["paper"], said))
        table.add_row(str(claim["id"]), WORDS[claim["holds"]], *words)
    held = [claim["holds"] for claim in claims]
    counted = f"{held.count(True)} hold, {held.count(False)} fail, {held.count(None)} are open."
    console.print(f"Of {len(claims)} claims {counted}", highlight=False)
    console.print(table)


def _told(folder: Path) -> dict[str, str]:
    path = folder / "study.json"
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return {"study": str(told["study"]), "scale": str(told["scale"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"cannot read '{path}' ({error!r}): run `saliometer reproduce` again in this folder"
        ) from error


def _part(folder: Path) -> dict[str, Any]:
    try:
        made = progress(opened(folder))
    except (ValueError, KeyError) as error:
        return {"name": folder.name, "finished": False, "scored": 0, "failed": 0, "total": 0, "error": str(error)}
    return {"name": folder.name, "finished": made.finished, **vars(made), "error": ""}


def _claims(folder: Path, parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    if not any(part["finished"] for part in parts):
        return []
    from saliometer.studies._opened import opened as opened_study

    return opened_study(folder).claims()
