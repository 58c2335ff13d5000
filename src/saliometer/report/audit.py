"""An audit's run as a book: methods ranked by how many metrics they beat the controls on."""

from collections.abc import Sequence

import numpy as np

from saliometer import judgement, registry
from saliometer.cose.summary import label as cose_label
from saliometer.engine.judged import Judged
from saliometer.engine.run import Run
from saliometer.judgement import Column
from saliometer.report import facts, pictures, words
from saliometer.report.board import cells
from saliometer.report.book import Book, Cost, Head, Method, Sample, Term
from saliometer.report.figures import drawn
from saliometer.sanity.summary import label

NOTE = (
    "Means over images; fractions are times 100. Small print is the 95 % interval (10,000 resamples of the images, the "
    "same for all). Methods share a rank where they beat the controls on as many metrics, and lose to one of them on "
    "as many; a metric's rank (small, after #) where their paired difference could be zero."
)

WORDS = {
    "Symbols": (
        "x is an image, p(x) the probability that the model gives to the explained class, f(x) its score (logit). E is "
        "the attribution, a signed number for each pixel; m is the map that is made of it, scaled to 0..1; x·m is the "
        "image times its map: what the map leaves out is black."
    ),
    "residual": (
        "How far a map is from what its method promises, such as adding up to the score; 0 is a promise kept. It says "
        "nothing of how good the map is."
    ),
    "Interval": (
        "The 95 % interval of a mean over images: images are drawn again, with replacement, 10,000 times; the same "
        "draws for every method, so that differences are paired."
    ),
    "Rank": (
        "First come methods that beat random, edge and centre on most metrics of fidelity and location, then those "
        "that lose to one of them on fewest. The small #3 in a cell is the rank under that metric alone."
    ),
}


def book(run: Run) -> Book:
    judged = Judged(run, [])
    if not len(judged.rows):
        raise ValueError(f"the run '{run.folder}' has no scores yet: run `saliometer audit` to its end first")
    columns = [c for c in judged.columns if judgement.shown(c.metric) and judgement.kind_of(c.metric)]
    methods = [*judged.methods, *(c for c in judged.controls if any(c in column.methods for column in columns))]
    images = judged.columns[0].images
    places = {image: place for place, image in enumerate(images)}
    return Book(
        kind="audit",
        name=run.folder.resolve().name,
        title=f"Which saliency maps hold up on {run.manifest['model']['name']}?",
        created=run.manifest["created"],
        verdict=judged.verdict(),
        facts=facts.audited(judged),
        methods=_methods(judged, methods),
        heads=[_head(judged, column, methods) for kind in judgement.KINDS for column in _of_kind(columns, kind)],
        samples=[Sample(image) for image in images],
        pictures=pictures.of_audit(run, methods, places),
        provenance=facts.audit_provenance(run),
        note=" ".join((NOTE, *judged.pair_sentences())),
        banner=facts.unfinished(run),
        lost=[m for m in run.manifest["methods"] if m not in methods],
        figures=drawn("audit", judged),
        warnings=[*judged.problems(), *facts.left_out(run)],
        failed=facts.failed(run),
        costs=[
            Cost(what, c["seconds"], c["passes"], c["passes_shared"])
            for by in ("metric", "method")
            for what, c in judged.costs(by).items()
        ],
        terms=_terms(judged),
        versions=run.manifest["versions"],
    )


def _of_kind(columns: Sequence[Column], kind: str) -> list[Column]:
    return [column for column in columns if judgement.kind_of(column.metric) == kind]


def _methods(judged: Judged, methods: Sequence[str]) -> list[Method]:
    """Methods that beat the controls on as many metrics, and lose on as many, share a rank."""
    ranks = judgement.places(judgement.holdings(judged.columns, judged.methods, judged.controls))
    found = []
    for method in methods:
        facts_ = judged.run.manifest["methods"][method]
        role = "control" if facts_["control"] else "own" if facts_.get("own") else ""
        hint = words.CONTROLS.get(words.kind(method), "a control") if role == "control" else "yours" if role else ""
        found.append(Method(method, role, hint, ranks.get(method, "")))
    return found


def _head(judged: Judged, column: Column, methods: Sequence[str]) -> Head:
    there = [method for method in methods if method in column.methods]
    ranks = column.ranks([method for method in there if method not in judged.controls])
    values = np.full((len(methods), len(column.images)), np.nan, np.float32)
    for place, method in enumerate(methods):
        if method in column.methods:
            values[place] = column.values[:, column.methods.index(method)]
    known = column.metric in registry.metrics  # a residual is none
    kind = judgement.kind_of(column.metric)
    several = label(column.metric, column.definition) if kind == judgement.RANDOMISATION else ""
    if kind == judgement.CHANGE:
        several = cose_label(column, judged.columns)
    return Head(
        column.metric, column.definition, column.better, kind, judgement.is_share(column.metric, column.definition),
        cells(column, there, judged.controls, ranks, column.undefined, judgement.judging(column.metric)),
        label=several, words=registry.metrics[column.metric].summary if known else "", values=values,
    )  # fmt: skip


def _terms(judged: Judged) -> list[Term]:
    """The metrics of this run, then the words that the page uses."""
    found = []
    for column in judged.columns:
        if column.metric not in registry.metrics:
            continue
        entry = registry.metrics[column.metric]
        constant, zero, single = entry.facts.degenerate
        better = f" {column.better.capitalize()} is better." if column.better else ""
        text = (
            f"{words.plain(entry.summary)}{better} A constant map: {constant}. One of zeros: {zero}. "
            f"One pixel: {single}. NaN: invalid."
        )
        found.append(Term(column.metric, text, entry.facts.formula, column.definition))
    controls = [c for c in judged.controls if any(c in column.methods for column in judged.columns)]
    told = ((c, words.CONTROLS.get(words.kind(c), "a control")) for c in controls)
    return [
        *found,
        *(Term(name, text) for name, text in WORDS.items()),
        *(Term(f"Control {name}", f"{text[0].upper()}{text[1:]}.") for name, text in told),
    ]
