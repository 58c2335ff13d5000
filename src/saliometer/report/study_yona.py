"""The causal study as a book: pictures of the paper's figures first, then gates, a scoreboard of E and DD, claims."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from saliometer.engine.run import Run
from saliometer.report import facts
from saliometer.report.book import Book, Cell, Cost, Head, Method, Term
from saliometer.report.figures import drawn
from saliometer.report.words import CONTROLS
from saliometer.studies._claims import MissingError
from saliometer.studies._yona_evidence import Evidence
from saliometer.studies._yona_headline import CAUSAL_RULE, RULE
from saliometer.studies.yona import MAPS, PAIRS, Study
from saliometer.summary import Estimate

HINTS = CONTROLS | {
    "input": "the image itself as a map",
    "fresh_noise": "noise, drawn anew for every model",
    "oracle": "what decides the task the model learned, with a tenth of noise",
}
TERMS = (
    Term("t, half, t1, t2", "Name the digit; is the bottom half there; name the shape drawn beside the digit; name the "
         "digit beside the shape."),
    Term("pairs, pairs2", "Two pictures side by side, of two groups of five classes: name that of the first group, of "
         "the second."),
    Term("B, W_T, W_R", "The mean distance of maps of the same image by a trained and a random model, by two trained "
         "ones, by two random ones. The distance is total variation: half the sum of absolute differences of two maps, "
         "each as absolute values that sum to 1."),
    Term("E", "What lies between trained and random models beyond both noise floors; 0 where both have the same "
         "distribution of maps.", "E = B − (W_T + W_R) / 2"),
    Term("F, focus", "The share of what decides in the mass on what decides and what distracts.",
         "F = a(A) / (a(A) + a(N))"),
    Term("DD", "Double dissociation: F by models that learned one labelling less F by models that learned the other, "
         "of the same region on the same images.", "DD = F(M₁) − F(M₂)"),
    Term("Intervals", "Resamples of models, then of images (hierarchical bootstrap); those of similarities are over "
         "training seeds. p comes from a permutation of the labels trained and random over models, corrected by Holm "
         "over methods and tasks."),
    Term("sensitive, insensitive, undecided", "Sensitive: p below 0.01 and E above 0 for sure. Insensitive: E below "
         "0.02 for sure. Else, or with a missed gate, undecided. Accurate besides: DD above 0.10 for sure, and F above "
         "that of random models and of the area, intervals apart."),
    Term("The two checks", f"A method {RULE}. It {CAUSAL_RULE}."),
)  # fmt: skip


def book(study: Study) -> Book:
    if MAPS not in study.runs or not study.runs[MAPS].finished_any():
        raise ValueError(
            f"the study '{study.folder}' has no maps yet, which its report starts from: "
            f"`saliometer reproduce yona --scale {study.scale} --out {study.folder}` makes them"
        )
    e, run, claims = study.evidence, study.runs[MAPS], study.claims()
    figures = drawn("yona", study)
    there = {one.figure.name for one in figures}
    return Book(
        kind="yona",
        name=study.folder.resolve().name,
        title="Sanity checks for saliency maps, done causally",
        created=str(run.manifest["created"]),
        verdict=_verdict(study, claims),
        facts=_facts(study),
        methods=[Method(name) for name in e.methods]
        + [Method(name, "control", HINTS.get(name, "")) for name in e.controls],
        heads=_heads(e),
        samples=[],
        pictures=None,
        provenance=_provenance(study),
        note="Under E the verdict on the method and task; under DD the focus of trained / random models.",
        banner=" ".join(filter(None, (facts.unfinished(one) for one in study.runs.values()))),
        figures=figures,
        figures_first=True,
        claims=[claim | {"figure": claim["figure"] if claim["figure"] in there else ""} for claim in claims],
        costs=_costs(study.timings()),
        warnings=[f"Gate missed: {line}" for line in study.missed()]
        + [line for one in study.runs.values() for line in facts.left_out(one)],
        failed=[line for one in study.runs.values() for line in facts.failed(one)],
        terms=TERMS,
        versions=run.manifest["versions"],
    )


def _costs(timings: Mapping[str, float]) -> list[Cost]:
    """By part; the methods of one together."""
    found: dict[str, float] = {}
    for part, seconds in timings.items():
        word = "ablations" if part.startswith("ablation ") else part.partition(":")[0]
        found[word] = found.get(word, 0.0) + seconds
    return [Cost(part, seconds, 0.0, 0.0) for part, seconds in found.items()]


def _verdict(study: Study, claims: Sequence[Mapping[str, Any]]) -> list[str]:
    held = [claim["holds"] for claim in claims]
    counted = (
        f"Of {len(claims)} claims of and about Yona and Greenfeld, {held.count(True)} hold here, "
        f"{held.count(False)} fail and {held.count(None)} stay open."
    )
    said = study.headline()
    small = [
        "With four models of each kind no permutation test can reach 0.01, so at this scale nothing can be called "
        "sensitive."
    ] * (study.scale == "smoke")
    return [*said[:2], counted, *said[2:], *small]


def _heads(e: Evidence) -> list[Head]:
    found = []
    for task in e.tasks:
        cells = _cells(e, partial(_effect, e, task), partial(_said, e, task))
        found.append(_head(f"E: {task}", "E", cells, "how far training moves the map beyond seed noise"))
    for task in ("t1", "pairs"):
        cells = _cells(e, partial(e.dissociation, task), partial(_focus, e, task))
        words = "how much more of the map lies on an object by models that learned to name it"
        found.append(_head(f"DD: {'shapes' if task == 't1' else task}", "DD", cells, words))
    cells = _cells(e, partial(e.similarity, "t"), lambda method: "", lifted=False)
    words = "Spearman (abs) of maps of trained and random models on t: what the original check looks at"
    found.append(_head("alike: t", "similarity", cells, words, better="lower"))
    return [head for head in found if head.cells]


def _head(name: str, kind: str, cells: Mapping[str, Cell], words: str, better: str = "higher") -> Head:
    return Head(name, "", better, kind, False, cells, words=words)


def _cells(
    e: Evidence, number: Callable[[str], Estimate], note: Callable[[str], str], lifted: bool = True
) -> dict[str, Cell]:  # fmt: skip
    found = {}
    for method in (*e.methods, *e.controls):
        with suppress(MissingError):
            one = number(method)
            lift = min(1.0, 2 * one.value) if lifted and one.low > 0 and method in e.methods else 0.0
            found[method] = Cell(one.value, one.low, one.high, lift=lift, note=note(method))
    return found


def _effect(e: Evidence, task: str, method: str) -> Estimate:
    return e.energy(task, method).effect


def _said(e: Evidence, task: str, method: str) -> str:
    return str(e.verdict(task, method))


def _focus(e: Evidence, task: str, method: str) -> str:
    return f"F {e.focus(task, task, method).value:.2f} / {e.focus(task, 'random', method).value:.2f}"


def _facts(study: Study) -> list[tuple[str, str]]:
    told = study.told
    counts = {scene: count for name in (MAPS, PAIRS) for scene, count in _counts(study, name).items()}
    models = ", ".join(f"{len(some)} of {group}" for group, some in told.get("models", {}).items())
    return [
        ("Scale", study.scale),
        ("Digits", str(told.get("digits"))),
        ("Photographs", str(told.get("photos") or "none: pairs of digits")),
        ("Models trained", models),
        ("Images", ", ".join(f"{count} {scene}" for scene, count in counts.items())),
        ("Methods", f"{len(study.evidence.methods)}, and {len(study.evidence.controls)} controls"),
        ("Explained class", "each model's own prediction; the label on pairs"),
        ("Seed", str(told.get("seed"))),
    ]


def _counts(study: Study, name: str) -> dict[str, int]:
    return dict(study.runs[name].manifest["counts"]) if name in study.runs else {}


def _provenance(study: Study) -> list[tuple[str, Sequence[str]]]:
    manifest = study.runs[MAPS].manifest
    return [
        ("Study", [str(study.folder)]),
        ("Scale", [study.scale]),
        ("Parts", [_part(name, run) for name, run in study.runs.items()]),
        ("Created", [manifest["created"]]),
        ("Commands", manifest["commands"]),
        ("saliometer", [manifest["saliometer"]]),
        ("Versions", [f"{name} {version}" for name, version in manifest["versions"].items()]),
        (
            "Models (SHA-256)",
            [
                f"{group} seed {card.get('seed')}: accuracy {card['accuracy']:.4f}, {card.get('sha256', '')[:16]}"
                for group, some in study.told.get("models", {}).items()
                for card in some
            ],
        ),
        ("Methods", list(manifest["methods"])),
    ]


def _part(name: str, run: Run) -> str:
    made = facts.progress(run)
    state = "finished" if made.finished else f"not finished, {made.scored} of {made.total} units"
    return f"{name}: {state}" + (f", {made.failed} left out or failed" if made.failed else "")
