"""SMERF's numbers as Markdown: ours beside the paper's, in every definition, condition and K."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from saliometer.engine.presets import SMERF
from saliometer.studies._smerf_paper import spec_of, stored
from saliometer.studies._smerf_sweep import KS, condition
from saliometer.summary import Estimate, Scores, Uncertain

GROUPS = ("simple", "complex")
DEFINITIONS = ("clean", "clean_positive", "authors")
COLUMNS = (
    ("pafl", "simple", "mean"), ("safl", "simple", "mean"), ("pafl", "complex", "mean"), ("safl", "complex", "mean"),
    ("pafl", "simple", "min"), ("piou", "simple", "mean"), ("piou", "simple", "min"), ("piou", "complex", "mean"),
    ("piou", "complex", "min"),
)  # fmt: skip


def figure(scores: Scores, method: str, group: str, join: str) -> float:
    """NaN where the run lacks the method or the group."""
    places = scores.of(group)
    if method not in scores.methods or not places:
        return float("nan")
    values = scores.means[places, scores.methods.index(method)]
    return float(values.mean() if join == "mean" else values.min())


def _cells(values: list[float]) -> str:
    return " | ".join("-" if np.isnan(value) else f"{value:.2f}" for value in values)


def beside(rows: pa.Table) -> str:
    """Markdown: the authors' numbers and ours in their definition, and the gaps above 0.10."""
    scores = {metric: Scores(rows, metric, "authors") for metric in ("pafl", "safl", "piou")}
    titles = " | ".join(f"{metric.upper()} {group} {join}" for metric, group, join in COLUMNS)
    lines = [f"| method | whose | {titles} |", "|---|---|" + "---:|" * len(COLUMNS)]
    gaps = []
    for name in SMERF:
        spec = spec_of(name, scores["pafl"].methods)
        ours = [figure(scores[metric], spec, group, join) for metric, group, join in COLUMNS]
        theirs = [stored(*column, spec) for column in COLUMNS]
        lines.append(f"| {name} | paper | {_cells(theirs)} |")
        lines.append(f"| | ours | {_cells(ours)} |")
        for column, reference, value in zip(COLUMNS, theirs, ours, strict=True):
            if abs(reference - value) > 0.10:
                gaps.append(f"- {name}, {' '.join(column)}: paper {reference:.3g}, ours {value:.3f}")
    return "\n".join([*lines, "", "Differences above 0.10:", *(gaps or ["- none"])])


def definitions(rows: pa.Table) -> str:
    """Markdown: mean and worst PAFL, simple and complex, in every definition, best first by the clean one."""
    lines = [
        "| method | clean: simple | worst | complex | worst | worst bucket | positive only: simple | complex "
        "| authors: simple | complex |",
        "|---|---:|---:|---:|---:|---|---:|---:|---:|---:|",
    ]
    clean, positive, authors = (Scores(rows, "pafl", definition) for definition in DEFINITIONS)
    places = {method: place for place, method in enumerate(clean.methods)}

    def both(scores: Scores, method: str, joins: tuple[str, ...] = ("mean",)) -> list[float]:
        return [figure(scores, method, group, join) for group in ("simple", "complex") for join in joins]

    for method in sorted(places, key=lambda method: -sum(both(clean, method))):
        worst = clean.cells[int(clean.means[:, places[method]].argmin())]
        first, rest = both(clean, method, ("mean", "min")), both(positive, method) + both(authors, method)
        lines.append(f"| {method} | {_cells(first)} | {' '.join(worst)} | {_cells(rest)} |")
    return "\n".join(lines)


def by_bucket(rows: pa.Table, setting: str, methods: tuple[str, ...]) -> str:
    """Markdown: PAFL of one setting by bucket, clean and authors, beside the oracle under the authors' metric."""
    clean, authors = Scores(rows, "pafl", "clean"), Scores(rows, "pafl", "authors")
    places = clean.of(setting)
    lines = [f"| {setting} | " + " | ".join(clean.cells[place][1] for place in places) + " | mean |"]
    lines.append("|---|" + "---:|" * (len(places) + 1))
    for name, scores, method in [
        *((f"{m}, {d}", s, m) for m in methods for d, s in (("clean", clean), ("authors", authors))),
        ("oracle, authors", authors, "oracle"),
    ]:
        if method in scores.methods:
            values = scores.means[places, scores.methods.index(method)]
            lines.append(f"| {name} | {_cells([*values, values.mean()])} |")
    return "\n".join(lines)


def conditions(rows: Mapping[str, pa.Table]) -> str:
    """Markdown: PAFL and PIOU as the authors measure them, simple and complex, mean and lowest bucket, ours (paper)."""
    columns = [(metric, group, join) for metric in ("pafl", "piou") for group in GROUPS for join in ("mean", "min")]
    titles = " | ".join(f"{metric.upper()} {group} {join}" for metric, group, join in columns)
    lines = [f"| models | method | {titles} |", "|---|---|" + "---:|" * len(columns)]
    for part, some in rows.items():
        scores = {metric: Scores(some, metric, "authors") for metric in ("pafl", "piou")}
        for name in SMERF:
            spec = spec_of(name, scores["pafl"].methods)
            cells = [_beside(figure(scores[c[0]], spec, *c[1:]), stored(*c, spec, part)) for c in columns]
            lines.append(f"| {part} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _beside(ours: float, theirs: float) -> str:
    return _cells([ours]) + ("" if np.isnan(theirs) else f" ({theirs:.3g})")


def identified(scores: Scores, several: Mapping[str, Uncertain]) -> str:
    """Markdown: how often each method's maps tell the seven models apart, in percent, best first."""
    means = {method: scores.estimate(method, scores.of("all")) for method in scores.methods}
    lines = ["| method | told right | 95 % interval over images | over models |", "|---|---:|---|---|"]
    for method in sorted(means, key=lambda one: -means[one].value):
        ends = [f"{100 * one.low:.1f} to {100 * one.high:.1f}" for one in (means[method], *_models(several, method))]
        lines.append(f"| {method} | {100 * means[method].value:.1f} | {' | '.join([*ends, '-'][:2])} |")
    return "\n".join(lines)


def _models(several: Mapping[str, Uncertain], method: str) -> list[Estimate]:
    return [several[method].models] if method in several else []


def by_k(rows: pa.Table) -> str:
    """Markdown: clean PIOU by the number of top pixels."""
    swept = [Scores(rows, "piou", "clean", condition=condition(k)) for k in KS]
    lines = ["| K | " + " | ".join(map(str, KS)) + " |", "|---|" + "---:|" * len(KS)]
    for method in swept[0].methods:
        lines.append(f"| {method} | {_cells([figure(scores, method, 'all', 'mean') for scores in swept])} |")
    return "\n".join(lines)


def of_black(rows: pa.Table) -> list[str]:
    methods = tuple(spec_of(name, rows["method"].unique().to_pylist()) for name in ("IG", "I*G"))
    return [beside(rows), definitions(rows), by_bucket(rows, "complex-cr2", methods)]


def tables(
    rows: Mapping[str, pa.Table], told: Scores | None, swept: pa.Table | None, several: Mapping[str, Uncertain]
) -> str:
    """Everything, under headings."""
    found = of_black(rows["black"]) if "black" in rows else []
    if len(rows) > 1:
        found += ["**Other conditions, the authors' metric, ours (paper)**", conditions(rows)]
    if told is not None:
        found += ["**Settings told apart by maps alone, percent; chance 14.3**", identified(told, several)]
    if swept is not None and len(swept):
        found += ["**PIOU by the number of top pixels, complex-cr1 bucket 9**", by_k(swept)]
    return "\n\n".join(found)
