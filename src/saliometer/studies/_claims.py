"""A paper's claims: each a small function over rows that gives margins, positive where the claim holds."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Draws = npt.NDArray[np.float64]  # (1 + resamples,): the estimate itself, then one value for each bootstrap resample
Evidence = TypeVar("Evidence")


@dataclass(frozen=True)
class Finding:
    """What our rows say of a claim; None where they cannot say, with the reason."""

    ours: str
    holds: bool | None
    why: str = ""


@dataclass(frozen=True)
class Claim(Generic[Evidence]):
    number: int
    text: str
    paper: str  # the paper's own figures
    test: Callable[[Evidence], Finding]
    figure: str = ""  # of the report, that shows what it is about

    def judged(self, evidence: Evidence) -> dict[str, Any]:
        """What became of it; evidence that is missing leaves it open."""
        try:
            found = self.test(evidence)
        except MissingError as missing:
            found = Finding("", None, str(missing))
        holds = None if found.holds is None else bool(found.holds)  # numpy's cannot be written as JSON
        return {
            "id": self.number, "text": self.text, "paper": self.paper, "ours": found.ours, "holds": holds,
            "why": found.why, "figure": self.figure,
        }  # fmt: skip


PRINTED = ("id", "text", "paper", "ours", "holds", "why")


def as_json(claims: Iterable[Mapping[str, Any]]) -> str:
    """What `reproduce --json` prints of any study."""
    return json.dumps({"claims": [{key: claim[key] for key in PRINTED} for claim in claims]}, indent=1)


class MissingError(LookupError):
    """The rows do not hold what a claim is about."""


def margins(named: Mapping[str, Draws], ours: str = "", sure: Collection[str] = ()) -> Finding:
    """Holds if every margin's estimate is positive, for those in `sure` its whole interval; says which are not.

    An undefined margin (NaN) leaves the claim open unless another fails.
    """
    worst = {name: _interval(draws) for name, draws in named.items()}
    undefined = [name for name, draws in named.items() if np.isnan(draws[0])]
    failing = [name for name, draws in named.items() if draws[0] <= 0 or (name in sure and worst[name][0] <= 0)]
    open_ = [name for name, (low, high) in worst.items() if low <= 0 < high]
    figures = "; ".join(
        f"{name}: {draws[0]:+.3g} [{low:.3g}, {high:.3g}]"
        for (name, draws), (low, high) in zip(named.items(), worst.values(), strict=True)
    )
    said = {"fails: ": failing, "undefined: ": undefined, "the interval holds 0 for ": open_}
    why = "; ".join(words + ", ".join(names) for words, names in said.items() if names)
    holds = None if undefined and not failing else not failing
    return Finding("; ".join(filter(None, (ours, f"margins {figures}"))), holds, why)


def _interval(draws: Draws) -> tuple[float, float]:
    known = draws[1:][~np.isnan(draws[1:])]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)


def shown(values: Mapping[str, Draws]) -> str:
    """Estimates by name, in words."""
    return ", ".join(f"{name} {draws[0]:.3g}" for name, draws in values.items())


def least(values: Sequence[Draws]) -> Draws:
    found: Draws = np.min(np.stack(values), 0)
    return found


def most(values: Sequence[Draws]) -> Draws:
    found: Draws = np.max(np.stack(values), 0)
    return found


def nth(values: Sequence[Draws], place: int) -> Draws:
    """The highest for place 1, the second highest for 2."""
    found: Draws = np.sort(np.stack(values), 0)[-place]
    return found


def claims_markdown(claims: Sequence[dict[str, Any]]) -> str:
    """A table for the docs: claim, the paper's figure, the verdict, ours."""
    words = {True: "**holds**", False: "**fails**", None: "open"}
    lines = ["| | claim | paper | verdict | ours |", "|---:|---|---|---|---|"]
    for claim in claims:
        said = "; ".join(filter(None, (claim["ours"], claim["why"]))).replace("|", "/").replace("\n", "; ")
        lines.append(f"| {claim['id']} | {claim['text']} | {claim['paper']} | {words[claim['holds']]} | {said} |")
    return "\n".join(lines)


def print_claims(claims: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    words = {True: "[green]holds[/green]", False: "[red]fails[/red]", None: "[dim]open[/dim]"}
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in ("", "claim", "paper", "ours", ""):
        table.add_column(name, overflow="fold")
    for claim in claims:
        said = "\n".join(filter(None, (claim["ours"], claim["why"])))
        table.add_row(
            str(claim["id"]), escape(claim["text"]), escape(claim["paper"]), escape(said), words[claim["holds"]]
        )
    Console().print(table)
    held = [claim["holds"] for claim in claims]
    print(f"{held.count(True)} hold, {held.count(False)} fail, {held.count(None)} are open.")
