"""SMERF's study as a book: the benchmark on black, with what other conditions say, claims and further figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from saliometer.engine.run import Run
from saliometer.report import bench, facts
from saliometer.report.book import Book
from saliometer.report.figures import drawn
from saliometer.report.words import kind
from saliometer.studies._smerf_paper import SHORT
from saliometer.studies._smerf_study import CONDITIONS, Study
from saliometer.summary import Scores


def book(study: Study) -> Book:
    if "black" not in study.runs:
        raise ValueError(
            f"the study '{study.folder}' has no scores on black yet, which its report starts from: "
            f"`saliometer reproduce smerf --scale {study.scale} --out {study.folder}` makes them"
        )
    black, claims = bench.book(study.runs["black"]), study.claims()
    figures = [*black.figures, *drawn("smerf", study)]
    there = {one.figure.name for one in figures}
    return replace(
        black,
        kind="smerf",
        name=study.folder.resolve().name,
        title="Sanity simulations for saliency methods, rerun",
        verdict=_verdict(study, claims),
        facts=[*black.facts, *_facts(study)],
        figures=figures,
        claims=[claim | {"figure": claim["figure"] if claim["figure"] in there else ""} for claim in claims],
        warnings=[*black.warnings, *unaccepted(study)],
        provenance=[
            ("Study", [str(study.folder)]),
            ("Scale", [study.scale]),
            ("Parts", [_part(study, name) for name in CONDITIONS]),
            *black.provenance,
        ],
    )


def _verdict(study: Study, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    held = [claim["holds"] for claim in claims]
    counted = (
        f"Of {len(claims)} claims of Kim, Plumb and Talwalkar, {held.count(True)} hold here, {held.count(False)} fail "
        f"and {held.count(None)} stay open."
    )
    return [counted, *filter(None, [drop(study)])]


def drop(study: Study) -> str:
    """How much of the best method's fall from simple to complex reasoning is the metric's; '' where none can say."""
    rows = study.rows("black")
    authors = Scores(rows, "pafl", "authors")
    means = {method: _fall(authors, method) for method in authors.methods}
    ranked = [m for m in means if m in SHORT and kind(m) not in ("random", "edge") and not np.isnan(sum(means[m]))]
    if not ranked or "oracle" not in means or np.isnan(sum(means["oracle"])):
        return ""
    best = max(ranked, key=lambda method: sum(means[method]))
    (simple, complex_), (high, low) = means[best], means["oracle"]
    start = f"By the paper's own metric the best method, {best}, "
    if complex_ >= simple:
        return f"{start}does not fall from simple ({_in(simple)}) to complex reasoning ({_in(complex_)})."
    share = round(100 * (high - low) / (simple - complex_))
    return (
        f"{start}falls from {_in(simple)} on simple to {_in(complex_)} on complex reasoning, but a perfect map falls "
        f"too, from {_in(high)} to {_in(low)}: {share} % of the drop is the metric's own."
    )


def _fall(scores: Scores, method: str) -> tuple[float, float]:
    """Mean PAFL on simple and complex reasoning; NaN where there is none."""
    place = scores.methods.index(method)
    means = [scores.means[scores.of(group), place] for group in ("simple", "complex")]
    simple, complex_ = (float(some.mean()) if len(some) else float("nan") for some in means)
    return simple, complex_


def _in(value: float) -> str:
    return f"{100 * value:.1f} %"


def _facts(study: Study) -> list[tuple[str, str]]:
    shown = [spec for spec in study.runs["black"].manifest["methods"] if SHORT.get(spec) == "D-SHAP"]
    there = ", ".join(f"{name} ({_models(run)} models)" for name, run in study.runs.items())
    return [
        ("Scale", study.scale),
        ("Conditions", there),
        *([("D-SHAP", f"{shown[0]}; the paper compares with 1000 images")] if shown else []),
    ]


def _models(run: Run) -> int:
    return len(run.manifest["fixed"]["weights"])


def unaccepted(study: Study) -> list[str]:
    """A warning for each model whose reasoning is not known."""
    return [
        f"{stem}: a model of {part} that was not accepted (accuracy {card['accuracy']:.3f}): its reasoning is not known"
        for part, models in study.models.items()
        for stem, card in models.items()
        if not card["accepted"]
    ]


def _part(study: Study, name: str) -> str:
    if name not in study.runs:
        return f"{name}: not run; {study.missing.get(name, 'the same command goes on with it')}"
    run = study.runs[name]
    made = facts.progress(run)
    state = "" if made.finished else f"; not finished, {made.scored} of {made.total} units"
    images = sum(run.manifest["counts"].values())
    return f"{name}: {images} images, {_models(run)} models, {run.manifest['passes']:,} passes{state}"
