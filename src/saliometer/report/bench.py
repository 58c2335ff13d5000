"""A benchmark's run as a book: ranked by PAFL, with its buckets as groups of images."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saliometer import registry
from saliometer.engine.run import Run
from saliometer.report import facts, pictures, verdict, words
from saliometer.report.board import cells
from saliometer.report.book import Book, Cell, Head, Method, Sample
from saliometer.report.figures import Drawn, drawn
from saliometer.report.view import View
from saliometer.studies import _smerf_claims
from saliometer.summary import Estimate, Scores, lower_is_better, of_all_models, problems, tied_ranks

FIRST = ("clean", "clean_positive", "authors")  # the order of definitions
MANY = 750_000  # values of single images that a page holds
PER_PIXEL = ("pmafl", "smafl")  # shares of single pixels, too small for tables of fractions times 100
FEWER = 2_000  # resamples of metrics that no rank rests on
NOTE = (
    "Means over buckets, each of equal weight; fractions are times 100. Whiskers and small print are 95 % intervals; "
    "methods whose paired difference could be zero share a rank (1=). Controls explain nothing and have no rank."
)
SINGLE = "With one image a bucket there are no intervals, and ranks follow the bare means; fractions are times 100."


def book(run: Run) -> Book:
    rows = run.rows().filter(pc.field("condition") == "")  # methods as they are; other budgets and seeds stand in rows
    views = _views(run, rows)
    first = views[0]
    definitions = [view.definition for view in views]
    samples, places = _samples(run, rows, len(first.methods) * _columns(rows))
    claims = [] if words.of_another_task(run) else _smerf_claims.judged(rows)
    return Book(
        kind="bench",
        name=run.folder.resolve().name,
        title="Do these saliency maps tell the truth?",
        created=run.manifest["created"],
        verdict=verdict.sentences(first),
        facts=facts.measured(run, rows, definitions),
        methods=_methods(first),
        heads=[head for view in views for head in _heads(view, first.methods, places)],
        samples=samples,
        pictures=pictures.of_bench(run, first.methods, places),
        provenance=facts.provenance(run),
        note=SINGLE if first.single else NOTE,
        banner=facts.unfinished(run),
        lost=first.lost,
        figures=_figures(views),
        claims=claims if _smerf_claims.testable(claims) else [],
        warnings=[*problems(rows), *facts.left_out(run)],
        failed=facts.failed(run),
        costs=facts.costs(run),
        terms=words.terms(run, definitions),
        versions=run.manifest["versions"],
    )


def _views(run: Run, rows: pa.Table) -> list[View]:
    if not len(rows):
        failures = run.failures()
        why = f"; {', '.join(failures)} failed, see '{run.folder / 'failures'}'" if failures else ""
        raise ValueError(
            f"the run '{run.folder}' has no scores yet{why}: run `saliometer bench --out {run.folder}` to its end, "
            "then make the report"
        )
    there = rows.filter(pc.field("metric") == "pafl")["definition"].unique().to_pylist()
    ordered = sorted(there, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
    return [View(run, rows, definition) for definition in ordered]


def _figures(views: Sequence[View]) -> list[Drawn]:
    first, *others = views
    return drawn("bench", first) + [one for view in others for one in drawn("bench", view, view.definition)]


def _methods(view: View) -> list[Method]:
    shared = Counter(standing.rank for standing in view.standings)
    ranks = {s.method: f"{s.rank}{'=' if shared[s.rank] > 1 else ''}" for s in view.standings if s.rank}
    return [Method(name, view.role(name), _hint(view, name), ranks.get(name, "")) for name in view.methods]


def _hint(view: View, method: str) -> str:
    role = view.role(method)
    if role in ("control", "ceiling"):
        return words.CONTROLS.get(words.kind(method), "a control")
    return "your method" if role == "own" else ""


def _columns(rows: pa.Table) -> int:
    scored = rows.filter(pc.field("metric").isin(list(registry.metrics)))
    return len(scored.select(["metric", "definition"]).group_by(["metric", "definition"]).aggregate([]))


def _samples(run: Run, rows: pa.Table, each: int) -> tuple[list[Sample], dict[str, int]]:
    """Images in their order, and where each is; the first of every bucket where a page cannot hold all."""
    found = rows.select(["setting", "bucket", "sample"]).group_by(["setting", "bucket", "sample"], use_threads=False)
    told = found.aggregate([]).to_pylist()
    cells_ = {(one["setting"], one["bucket"]) for one in told}
    most = max(1, MANY // max(1, each) // max(1, len(cells_)))
    seen: Counter[tuple[str, str]] = Counter()
    samples: list[Sample] = []
    places: dict[str, int] = {}
    for one in told:
        cell = one["setting"], one["bucket"]
        seen[cell] += 1
        if seen[cell] <= most:
            places[f"{one['setting']} {one['sample']}"] = len(samples)
            samples.append(Sample(f"{one['setting']} {one['sample']}", f"{cell[0]}: {words.bucket(cell[1], run)}"))
    return samples, places


@dataclass(frozen=True)
class Part:
    """Some buckets of a metric, joined by their mean or by the worst."""

    scores: Scores
    places: Sequence[int]
    join: Callable[..., Any] = np.mean

    def estimate(self, method: str) -> Estimate:
        return self.scores.estimate(method, self.places, self.join)

    def difference(self, one: str, other: str) -> Estimate:
        found = self.scores.difference(one, other, self.places, self.join)
        flip = lower_is_better(self.scores.metric)
        return Estimate(-found.value, -found.high, -found.low) if flip else found


def _heads(view: View, methods: Sequence[str], places: dict[str, int]) -> list[Head]:
    metrics = [m for m in view.rows["metric"].unique().to_pylist() if m in registry.metrics]
    of = (pc.field("definition") == view.definition) & pc.field("metric").isin(metrics)
    rows = view.rows.filter(of)
    found: list[Head] = []
    for metric in dict.fromkeys(rows["metric"].to_pylist()):
        scores = view.primary if metric == "pafl" else view.secondary if metric == "safl" else None
        scores = scores or Scores(rows, metric, view.definition, FEWER)
        if not scores.cells:
            continue
        whole = _head(view, scores, Part(scores, scores.of("all")), methods)
        values = _grid(of_all_models(rows.filter(pc.field("metric") == metric)), methods, places)
        found.append(Head(**(vars(whole) | {"values": values, "bars": metric == "pafl"})))
        if metric == "pafl":
            found += _parts(view, scores, methods)
    return found


def _parts(view: View, scores: Scores, methods: Sequence[str]) -> list[Head]:
    """PAFL of simple and complex reasoning, and the worst bucket."""
    found = []
    for group in ("simple", "complex"):
        if scores.of(group):
            found.append(_head(view, scores, Part(scores, scores.of(group)), methods, f"{group} reasoning"))
    worst = _head(view, scores, Part(scores, scores.of("all"), np.min), methods, "worst bucket")
    cells_ = {s.method: s.worst_cell for s in view.standings if s.complete}
    named: dict[str, Cell] = {}
    for method, cell in worst.cells.items():
        setting, bucket = cells_.get(method, ("", ""))
        note = f"{setting}: {words.bucket(bucket, view.run)}" if setting else ""
        named[method] = Cell(**(vars(cell) | {"note": note}))
    return [*found, Head(**(vars(worst) | {"cells": named}))]


def _head(view: View, scores: Scores, part: Part, methods: Sequence[str], label: str = "") -> Head:
    entry = registry.metrics[scores.metric]
    there = [m for m in methods if m in scores.methods]
    lower = lower_is_better(scores.metric)
    known = {m: part.estimate(m).value for m in there if m not in view.controls and scores.complete(m)}
    order = sorted((m for m in known if not np.isnan(known[m])), key=lambda m: (known[m] if lower else -known[m], m))
    made = cells(part, there, view.controls, tied_ranks(order, part.difference), lambda m: _undefined(scores, m))
    return Head(
        scores.metric, view.definition, entry.facts.better, "focus" if label or scores.metric == "pafl" else "beside",
        scores.metric not in PER_PIXEL, made, label, entry.summary,
    )  # fmt: skip


def _undefined(scores: Scores, method: str) -> int:
    """Images that others have a value for."""
    place = scores.methods.index(method)
    return sum(int((np.isnan(a[:, place]) & ~np.isnan(a).all(1)).sum()) for a in scores.values.values())


def _grid(rows: pa.Table, methods: Sequence[str], places: dict[str, int]) -> npt.NDArray[np.float32]:
    """(methods, samples)."""
    found = np.full((len(methods), len(places)), np.nan, np.float32)
    at = {method: place for place, method in enumerate(methods)}
    columns = (rows[name].to_pylist() for name in ("setting", "sample", "method", "value"))
    for setting, sample, method, value in zip(*columns, strict=True):
        place = places.get(f"{setting} {sample}")
        if place is not None and method in at:
            found[at[method], place] = value
    return found
