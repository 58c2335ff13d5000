"""The causal study's numbers as Markdown, under headings: `tables.md` of a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import isnan
from typing import Any

import numpy as np
from torch import from_numpy

from saliometer.sanity.uncertainty import MARGINS, equivalent
from saliometer.studies._claims import MissingError
from saliometer.studies._yona_evidence import CAUSAL, OTHER, PRIMARY, Evidence, Floats, mean_known, over_seeds
from saliometer.studies._yona_headline import CAUSAL_RULE, RULE, checked, sentences
from saliometer.summary import Estimate

MEASURES = {
    "spearman_abs": "Spearman, abs", "spearman": "Spearman, signed", "ssim": "SSIM", "hog": "HOG, Pearson",
}  # fmt: skip
DASH = "-"


def cell(find: Callable[..., float | Floats], *of: Any, **which: str) -> str:
    """A number, the mean of several, or a dash where the run holds none."""
    try:
        return _mean(np.atleast_1d(find(*of, **which)))
    except MissingError:
        return DASH


def _mean(values: Floats) -> str:
    return DASH if isnan(mean := mean_known(values)) else f"{mean:.3f}"


def ranged(find: Callable[..., Estimate], *of: Any, **which: str) -> str:
    """A number with its interval."""
    try:
        return shown(find(*of, **which))
    except MissingError:
        return DASH


def shown(one: Estimate) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


def table(head: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def every(e: Evidence) -> list[str]:
    return [*e.methods, *e.controls]


def gates(e: Evidence) -> str:
    lines = [
        [task, gate.name, f"{gate.value:.3f}", gate.bar, "passed" if gate.passed else f"**missed** {gate.note}".strip()]
        for task, some in e.gates.items()
        for gate in some
    ]
    return table(["task", "gate", "value", "bar", ""], lines, 2)


def verdicts(e: Evidence) -> str:
    def word(task: str, method: str) -> str:
        return str(e.verdict(task, method)) if e.has(task, method) else DASH

    return table(["method", *e.tasks], [[m, *(word(task, m) for task in e.tasks)] for m in every(e)], 1 + len(e.tasks))


def energies(e: Evidence, task: str) -> str:
    lines = []
    for method in every(e):
        with suppress(MissingError):
            one = e.energy(task, method)
            numbers = [f"{value:.3f}" for value in (one.between, one.trained, one.random)]
            tests = [_p(one.p), _p(e.corrected[task, method])]
            word = str(e.verdict(task, method))
            seeds = _over_seeds(e, task, method, "E")
            lines.append([method, *numbers, shown(one.effect), f"{one.share:.2f}", *tests, *seeds, word])
    head = ["method", "B", "W_T", "W_R", "E [95 %]", "E/B", "p", "p, Holm", *_seed_heads("E"), "verdict"]
    return table(head, lines)


def _seed_heads(metric: str) -> list[str]:
    return [f"{metric} over seeds [95 %]", f"p that {metric} is within {MARGINS[metric]:g} of 0"]


def _over_seeds(e: Evidence, task: str, method: str, metric: str) -> list[str]:
    """The plain t-interval over training seeds, and two one-sided tests of a margin."""
    try:
        values = e.by_seed(task, method, metric)
    except MissingError:
        return [DASH, DASH]
    one, test = over_seeds(values), equivalent(from_numpy(values), MARGINS[metric])
    return [DASH if isnan(one.low) else shown(one), _p(test.p)]


def _p(value: float) -> str:
    return DASH if isnan(value) else f"{value:.2g}"


def focuses(e: Evidence, task: str) -> str:
    other = OTHER.get(task, "t")
    groups = [task, "random", other, *(["pretrained"] if task.startswith("pairs") else [])]
    lines = []
    for m in every(e):
        if not e.has(task, m):
            continue
        shares = [ranged(e.focus, task, group, m) for group in groups]
        dd = ranged(e.dissociation, task, m) if task in OTHER else DASH
        more = [
            cell(e.seeds, task, task, m, name, region=region)
            for name, region in (("focus", "dilated(2)"), ("auroc", "mask"), ("pointing", "mask"), ("coverage", "mask"))
        ]
        seeds = _over_seeds(e, task, m, "DD")
        lines.append([m, *shares, dd, *seeds, cell(e.gain, task, m), *more])
    scores = ["gain", "F, dilated", "AUROC", "pointing", "coverage"]
    return table(["method", *(f"F, {group}" for group in groups), "DD", *_seed_heads("DD"), *scores], lines)


def similarities(e: Evidence) -> str:
    tasks = [task for task in ("t", "half", "t1", "t2", "pairs") if task in e.tasks]
    head = ["method", *(f"{MEASURES[m]}: {task}" for m in MEASURES for task in tasks), "local: t"]
    lines = [
        [
            method,
            *(cell(e.alike, task, method, measure) for measure in MEASURES for task in tasks),
            cell(e.alike, "t", method, region="local"),
        ]
        for method in every(e)
    ]
    return table(head, lines)


def checks(e: Evidence) -> str:
    lines = [
        [one.method, f"{one.alike:.3f}", one.original, one.causal, one.leans, one.why] for one in checked(e)
    ]  # fmt: skip
    return table(["method", "Spearman, abs, on t", "original check", "causal check", "E and DD alone", "why"], lines)


def curves(e: Evidence, task: str, order: str, measure: str) -> str:
    found = {}
    for method in every(e):
        with suppress(MissingError):
            found[method] = e.curve(task, method, order, measure)
    if not found:
        return ""
    layers = list(next(iter(found.values())))
    lines = [[m, *(_mean(curve[layer]) if layer in curve else DASH for layer in layers)] for m, curve in found.items()]
    return table(["method", *layers], lines)


BESIDE_E = ("method", "MPRT, all layers", "smooth MPRT, all layers", "efficient MPRT", "E on t")


def beside_e(e: Evidence) -> list[list[str]]:
    """Smooth and efficient MPRT beside E on t, of what has any."""
    lines = [
        [
            m, cell(_full, e, m, "top_down", "plain"), cell(_full, e, m, "bottom_up", "smooth"),
            cell(e.seeds, "t", "t", m, "efficient"), ranged(_effect, e, m),
        ]
        for m in every(e)
    ]  # fmt: skip
    return [line for line in lines if any(cell != DASH for cell in line[1:4])]


def _full(e: Evidence, method: str, order: str, variant: str) -> Floats:
    return list(e.curve("t", method, order, variant=variant).values())[-1]


def _effect(e: Evidence, method: str) -> Estimate:
    return e.energy("t", method).effect


def effects(e: Evidence) -> str:
    """Equation (1): the norm of the weighted sum, and the weighted mean of norms."""
    lines = []
    for (task, condition), methods in e.posteriors.items():
        for method in methods:
            numbers = [
                cell(e.value, task, "", method, name, condition=condition)
                for name in ("lambda", "lambda.bias", "lambda.corrected", "lambda.companion_corrected")
            ]
            lines.append([condition, method, *numbers])
    head = ["weights", "method", "half norm", "bias", "corrected", "mean of norms, corrected"]
    return table(head, lines, 2)


def invalid(e: Evidence) -> str:
    lines = [[method, task, group, str(count)] for task, group, method, count in e.invalid]
    return table(["method", "images of", "models", "maps"], lines, 3)


def ablations(e: Evidence) -> str:
    lines = [[word, task, method, shown(one.effect), f"{one.share:.2f}"] for word, task, method, one in e.ablations()]
    return table(["ablation", "task", "method", "E [95 %]", "E/B"], lines, 3)


def pages(e: Evidence, unrun: Sequence[tuple[str, str]] = ()) -> Iterator[str]:
    """Everything, under headings."""
    yield "\n".join(f"- {sentence}" for sentence in sentences(e))
    yield f"Rules: {RULE}; {CAUSAL_RULE}."
    yield "**The two checks**"
    yield checks(e)
    yield "**Gates**"
    yield gates(e)
    yield "**Verdicts**"
    yield verdicts(e)
    for task in e.tasks:
        yield f"**Energy on {task}** (distance {PRIMARY})"
        yield energies(e, task)
    for task in [task for task in CAUSAL if task in e.tasks]:
        with suppress(MissingError):
            left_out = f"; {count} images without a shape are left out" if (count := e.left_out(task)) else ""
            yield f"**Focus on {task}** (area share {e.area(task):.3f}{left_out})"
            yield focuses(e, task)
    yield "**Similarity of trained with random maps**; local: on pixels that are not 0, the multiplier divided out"
    yield similarities(e)
    yield "**Equation (1)**"
    yield effects(e)
    for task in ("t", "t1", "t2"):
        for order in ("top_down", "bottom_up", "independent"):
            for measure, words in MEASURES.items():
                if found := curves(e, task, order, measure):
                    yield f"**{order} randomisation on {task}: {words}**, layers as they come"
                    yield found
    yield "**Smooth and efficient MPRT beside E**"
    yield table(BESIDE_E, beside_e(e))
    if e.invalid:
        yield "**Maps without any mass**, which are left out"
        yield invalid(e)
    yield "**Ablations**"
    yield ablations(e)
    if unrun:
        yield "Not run:\n" + "\n".join(f"- {name}: {why}" for name, why in unrun)
