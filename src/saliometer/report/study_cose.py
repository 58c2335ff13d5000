"""COSE's study as a book: the audit of its first model, with what all models say, claims and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from saliometer.report import audit, facts
from saliometer.report.book import Book
from saliometer.report.figures import drawn
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_ablations import gates
from saliometer.studies._cose_evidence import MODES, TABLE
from saliometer.studies._cose_grain import answer
from saliometer.studies._cose_study import Study

BOARD = "This scoreboard is of the first model alone; figures and claims are of all models."


def book(study: Study) -> Book:
    first = next((runs for one in study.models if one["role"] == TABLE and (runs := study.runs(one))), None)
    if first is None:
        raise ValueError(
            f"the study '{study.folder}' has no model that was explained yet, which its report starts from: "
            f"`saliometer reproduce cose --scale {study.scale} --out {study.folder}` goes on"
        )
    start, claims = audit.book(next(iter(first.values()))), study.claims()
    figures = drawn("cose", study)
    there = {one.figure.name for one in figures}
    return replace(
        start,
        kind="cose",
        name=study.folder.resolve().name,
        title="Do maps stay when the prediction stays, and move when it moves? COSE, rerun",
        verdict=_verdict(study, claims),
        facts=_facts(study),
        note=f"{BOARD} {start.note}",
        figures=figures,
        claims=[claim | {"figure": claim["figure"] if claim["figure"] in there else ""} for claim in claims],
        warnings=[*start.warnings, *_warnings(study)],
        provenance=[
            ("Study", [str(study.folder)]),
            ("Scale", [study.scale]),
            ("Parts", [line for one in study.models for line in _parts(study, one)]),
            *start.provenance,
        ],
    )


def _verdict(study: Study, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    held = [claim["holds"] for claim in claims]
    said = [
        f"Of {len(claims)} claims of and about Daroya, Sun and Maji, {held.count(True)} hold here, "
        f"{held.count(False)} fail and {held.count(None)} stay open."
    ]
    try:
        said += answer(study.evidence.by(MODES[1])).sentences()
    except MissingError as why:
        said.append(f"Whether Transformers get better COSE or smoother maps cannot be said: {why}.")
    if study.scale != "paper":
        said.append(f"This is the scale “{study.scale}”, with other models and fewer images than the paper's.")
    return said


def _facts(study: Study) -> list[tuple[str, str]]:
    e = study.evidence
    counts = {len(e.cose(model, method).images) for model in e.models() for method in e.methods([model])}
    return [
        ("Scale", study.scale),
        ("Data sets", ", ".join(e.data)),
        ("Models", ", ".join(dict.fromkeys(one.label for one in e.models()))),
        ("Methods", ", ".join(e.methods()) or "none of all models"),
        ("Images", " or ".join(str(count) for count in sorted(counts, reverse=True))),
        ("Explained class", "the class that is predicted for that very image by that very model"),
    ]


def _warnings(study: Study) -> list[str]:
    missed = [gate for gate in gates(study.trained) if not gate.passes]
    return [
        *(f"{one.label}, {one.data}: test accuracy {one.accuracy:.1f} %, {one.words}" for one in missed),
        *(f"failed: {what}: {why}" for what, why in study.failed.items()),
        *study.notes,
    ]


def _parts(study: Study, model: Mapping[str, Any]) -> list[str]:
    found = []
    for part, run in study.runs(model).items():
        made = facts.progress(run)
        state = "" if made.finished else f"; not finished, {made.scored} of {made.total} units"
        count, passes = run.manifest["request"]["count"], run.manifest["passes"]
        found.append(f"{model['data']}, {model['label']}, {part}: {count} images, {passes:,} passes{state}")
    return found
