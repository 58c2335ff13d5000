"""What the command line shows of an audit: the verdict, then a table of methods and metrics, then what it took."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saliometer import judgement
from saliometer.cose.summary import label as cose_label
from saliometer.judgement import Column, number
from saliometer.progress import duration
from saliometer.registry import Spec, metrics
from saliometer.report.facts import progress
from saliometer.show import screen, show_end, show_start

if TYPE_CHECKING:
    from rich.table import Table

    from saliometer.engine.estimate import Estimate
    from saliometer.engine.judged import Judged
    from saliometer.engine.source import Source

ARROWS = {"higher": "↑", "lower": "↓", "": ""}
NOTE = (
    "Mean over images ± half of the 95 % interval; fractions x100. ↑ higher is better, ↓ lower; * better than random, "
    "edge and centre, the controls that never see the model. Ranks count the metrics with a star, then those on which "
    "such a control is better; methods with as many of both share one (1=)."
)
WIDE = 4  # columns on a screen
SHORT = {
    "average_drop": "AD", "average_increase": "AI", "average_gain": "AG", "insertion": "ins", "deletion": "del",
    "sparseness": "sparse", "complexity": "compl", "max_sensitivity": "MS", "avg_sensitivity": "AS",
    "local_accuracy": "LA", "monotonicity": "mono", "completeness": "complete", "effective_complexity": "EC",
    "sufficiency": "suff", "necessity": "nec", "pointing_game": "point", "infidelity": "infid",
    "cose": "COSE", "cose.consistency": "consist", "cose.sensitivity": "sensit", "cose.discrimination": "D",
    "faithfulness_correlation": "faith", "attack_sensitivity": "attack", "residual": "resid",
}  # fmt: skip


def announce(expected: "Estimate", source: "Source", methods: int) -> str:
    """What is about to happen, before it does."""
    left = f"{expected.images} of " if expected.images < len(source) else ""
    when = duration(expected.seconds)
    images = f"{left}{len(source)} image{'s' * (len(source) > 1)}"
    names = f"{methods} method{'s' * (methods > 1)}"
    return f"{images}, {names}: {expected.passes:,} passes, about {when} on this machine."


def show(outcome: "Judged", page: Path | None) -> None:
    console = screen()
    scored = outcome.run.finished_any()
    show_start(outcome, outcome.verdict() if scored else [], console)
    if scored:
        ranks = ranked(outcome)
        for group in _groups(outcome.columns):
            console.print(_table(group, outcome, ranks))
        console.print(f"[dim]{NOTE}[/dim]", highlight=False, soft_wrap=True)
        for sentence in outcome.pair_sentences():
            console.print(f"[dim]{sentence}[/dim]", highlight=False, soft_wrap=True)
        _show_costs(outcome, console.print)
    show_end(outcome, page, console)


def as_dict(outcome: "Judged", page: Path | None) -> dict[str, Any]:
    """The same for machines."""
    return {
        **outcome.as_dict(), "finished": progress(outcome.run).finished, "report": str(page) if page else None,
    }  # fmt: skip


def ranked(outcome: "Judged") -> dict[str, str]:
    """Methods that beat the controls on as many metrics, and lose on as many, share a rank."""
    if not judgement.judged_by(outcome.columns):
        return {}
    return judgement.places(judgement.holdings(outcome.columns, outcome.methods, outcome.controls))


def _table(group: Sequence[Column], outcome: "Judged", ranks: Mapping[str, str]) -> "Table":
    from rich.markup import escape
    from rich.table import Table

    title = escape(_title(group, outcome.columns))
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("method", overflow="fold", min_width=16)
    for column in group:
        table.add_column(_head(column), justify="right", no_wrap=True)
    for method in [*outcome.methods, *outcome.controls]:
        cells = [_cell(column, method, outcome) for column in group]
        if any(method in column.methods for column in group):
            control = method in outcome.controls
            rank = "control" if control else ranks.get(method, "")
            table.add_row(rank, escape(method), *cells, style="dim" if control else None)
    return table


def _groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Columns by kind, each metric once a table, no more than a screen is wide; parts stand in rows and report only."""
    found: list[list[Column]] = []
    for kind in judgement.KINDS:
        rest = [c for c in columns if judgement.kind_of(c.metric) == kind and judgement.shown(c.metric)]
        if kind == judgement.RANDOMISATION:
            found += _tests(rest)
            continue
        while rest:
            first: dict[str, Column] = {}
            for column in rest:
                first.setdefault(column.metric, column)
            some = list(first.values())[:WIDE]
            found.append(some)
            rest = [column for column in rest if column not in some]
    return found


def _tests(columns: Sequence[Column]) -> list[list[Column]]:
    """Those of one randomisation test, which differ in the similarity."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        found.setdefault(_test(column), []).append(column)
    return [some[start : start + WIDE] for some in found.values() for start in range(0, len(some), WIDE)]


def _test(column: Column) -> str:
    """`mprt top_down, all drawn anew`: the metric with its order and what else was asked for."""
    params = dict(Spec.parse(column.definition).params)
    metric, _, part = column.metric.partition(".")
    usual = metrics[metric].parameters
    other = [f"{key}={value}" for key, value in params.items() if key != "similarity" and value != usual.get(key)]
    words = [f"{metric} {params['order']}" if "order" in params else metric, "all drawn anew" if part else ""]
    return ", ".join(filter(None, (*words, *(one for one in other if not one.startswith("order=")))))


def _head(column: Column) -> str:
    if judgement.kind_of(column.metric) == judgement.RANDOMISATION:
        return str(dict(Spec.parse(column.definition).params).get("similarity", "entropy"))
    return f"{SHORT.get(column.metric, column.metric)} {ARROWS[column.better]}".strip()


def _title(group: Sequence[Column], columns: Sequence[Column]) -> str:
    kind = judgement.kind_of(group[0].metric)
    if kind == judgement.RANDOMISATION:
        return f"\n{kind}: {judgement.KINDS[kind]} ({_test(group[0])})"
    several = any(sum(other.metric == column.metric for other in columns) > 1 for column in group)
    stages = dict.fromkeys(column.definition.partition("(")[0] for column in group)
    told = [*stages, *([cose_label(group[0], columns)] if kind == judgement.CHANGE else [])]
    return f"\n{kind}: {judgement.KINDS[kind]}" + (f" ({', '.join(told)})" if several else "")


def _cell(column: Column, method: str, outcome: "Judged") -> str:
    if method not in column.methods:
        return "-"
    found = column.estimate(method)
    half = np.nanmax([found.high - found.value, found.value - found.low, 0])
    above = judgement.stands(column, method, outcome.controls) == "above"
    text, way = (number(column.metric, value, column.definition) for value in (found.value, half))
    return f"{text} ±{way}{'*' if above else ' '}" if text != "-" else text


def _show_costs(outcome: "Judged", say: Callable[..., None]) -> None:
    costs = outcome.costs()
    passes, shared = (sum(cost[word] for cost in costs.values()) for word in ("passes", "passes_shared"))
    seconds = sum(cost["seconds"] for cost in costs.values())
    if passes:
        say(
            f"[dim]{passes:,.0f} passes in {duration(seconds)}; {shared:,.0f} more were shared between metrics.[/dim]",
            highlight=False,
        )


def show_moves(moves: Sequence[judgement.Move]) -> None:
    """How the order of methods moves between a metric's definitions."""
    from rich.markup import escape
    from rich.table import Table

    console = screen()
    for metric in dict.fromkeys(move.metric for move in moves):
        some = [move for move in moves if move.metric == metric]
        table = Table(title=f"\n{metric}: place of each method", title_justify="left", box=None, padding=(0, 1, 0, 0))
        table.add_column("method", overflow="fold", min_width=16)
        for place, _ in enumerate(some):
            table.add_column(f"[{place + 1}]", justify="right")
        for method in sorted(some[0].ranks, key=lambda m: np.nan_to_num(some[0].ranks[m], nan=np.inf)):
            places = [move.ranks[method] for move in some]
            known = [place for place in places if not np.isnan(place)]
            moved = bool(known) and max(known) - min(known) >= 3
            cells = [_or_dash(place, "g") for place in places]
            table.add_row(escape(method), *cells, style="bold" if moved else None)
        table.add_row("[dim]agrees with [1][/dim]", *(f"[dim]{_or_dash(one.agreement, '.2f')}[/dim]" for one in some))
        console.print(table)
        for place, move in enumerate(some):
            console.print(f"[dim][{place + 1}] {escape(move.definition)}[/dim]", highlight=False, soft_wrap=True)
    console.print("[dim]Bold: moves by three places or more. The last line is Spearman's correlation of places.[/dim]")


def moves_as_dicts(moves: Sequence[judgement.Move]) -> list[dict[str, Any]]:
    """The same for machines; undefined numbers are None."""

    def plain(value: float) -> float | None:
        return None if np.isnan(value) else value

    return [
        {
            **vars(move),
            "ranks": {m: plain(place) for m, place in move.ranks.items()},
            "agreement": plain(move.agreement),
        }
        for move in moves
    ]


def _or_dash(value: float, how: str) -> str:
    return "-" if np.isnan(value) else f"{value:{how}}"
