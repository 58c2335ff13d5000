"""A study as a book; the ten-methods one: its claims and figures over the run that explains the label."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from saliometer.engine.run import Run, opened
from saliometer.report import audit, study_cose, study_smerf, study_yona
from saliometer.report.book import Book
from saliometer.report.figures import drawn
from saliometer.studies import yona, zhang
from saliometer.studies._cose_study import Study as CoseStudy
from saliometer.studies._opened import opened as opened_study
from saliometer.studies.zhang import Study

TELLING = (23, 9, 25, 1, 2, 24)  # claims that the paper's conclusions rest on, the first of them first


def book(folder: Path) -> Book:
    study = opened_study(folder)
    if isinstance(study, yona.Study):
        return study_yona.book(study)
    if isinstance(study, CoseStudy):
        return study_cose.book(study)
    return of_study(study) if isinstance(study, Study) else study_smerf.book(study)


def of_study(study: Study) -> Book:
    runs = {path.parent.name: opened(path.parent) for path in sorted(study.folder.glob("*/run.json"))}
    if "label" not in runs:
        raise ValueError(
            f"the study '{study.folder}' has no run 'label', which its report starts from: "
            f"`saliometer reproduce zhang --scale {study.scale} --out {study.folder}` makes it"
        )
    figures, label = drawn("zhang", study), audit.book(runs["label"])
    there = {one.figure.name for one in figures}
    claims = [claim | {"figure": claim["figure"] if claim["figure"] in there else ""} for claim in study.claims()]
    return replace(
        label,
        kind="zhang",
        name=study.folder.resolve().name,
        title="Ten methods over fidelity, robustness and complexity, rerun",
        verdict=_verdict(claims, study.scale),
        facts=[*(_explained(study, *fact) for fact in label.facts), ("Scale", study.scale)],
        figures=figures,
        claims=claims,
        provenance=[
            ("Study", [str(study.folder)]),
            ("Scale", [study.scale]),
            ("Parts", [_part(name, run) for name, run in runs.items()]),
            *label.provenance,
        ],
    )


def _verdict(claims: Sequence[Mapping[str, Any]], scale: str) -> list[str]:
    held = [claim["holds"] for claim in claims]
    said = [
        f"Of {len(claims)} claims of and about Zhang, Torres and Hermanns, {held.count(True)} hold here, "
        f"{held.count(False)} fail and {held.count(None)} stay open."
    ]
    failing = {claim["id"]: claim["text"] for claim in claims if claim["holds"] is False}
    if failing:
        first = next((number for number in TELLING if number in failing), min(failing))
        said.append(f"The most telling one that fails is claim {first}: “{failing[first]}”.")
    if scale != "paper":
        said.append(
            f"This is the scale “{scale}”, with fewer images and steps than the paper's: order and signs count, not "
            "decimals."
        )
    return said


def _explained(study: Study, name: str, text: str) -> tuple[str, str]:
    """Images without labels were given the predicted class as theirs."""
    unlabelled = name == "Explained class" and not study.evidence.labelled
    return name, "the class the model predicts, for the images have no labels" if unlabelled else text


def _part(name: str, run: Run) -> str:
    request = run.manifest["request"]
    state = "" if zhang.finished(run) else "; not finished, so left out"
    return f"{name}: {request['count']} images, {run.manifest['passes']:,} passes{state}"
