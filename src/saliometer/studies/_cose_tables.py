"""COSE's study as Markdown: Table 1 and the numbers behind the figures, ours beside the paper's."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from saliometer.cose.operations import GEOMETRIC, PHOTOMETRIC
from saliometer.cose.table import CHANGED, DATA, MODELS, UNCHANGED
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_ablations import gates
from saliometer.studies._cose_accuracy import followed
from saliometer.studies._cose_claims import rows_of
from saliometer.studies._cose_evidence import CORRELATIONS, MODES, Evidence, Trained, estimated
from saliometer.studies._cose_more_tables import MORE
from saliometer.studies._cose_paper import CONV, METHODS, OVERALL, TRANSFORMER, accuracies, mean, table
from saliometer.studies._markdown import grid, shown
from saliometer.summary import Estimate

BANDS = ((1, 10), (11, 20), (21, 30))
KINDS = {"all": (GEOMETRIC, PHOTOMETRIC), "geometric": (GEOMETRIC,), "photometric": (PHOTOMETRIC,)}
VARIANT = "supervised"  # whose accuracy stands beside ours
PARTS = {  # of the summary -> what tables call it
    "harmonic": "COSE", "consistency": "c", "sensitivity": "s", "sensitivity_geometric": "s geometric",
    "sensitivity_photometric": "s photometric", "sensitivity_model": "s model", "discrimination": "D",
}  # fmt: skip


def markdown(e: Evidence, models: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
    """All of it, under headings; what was not run is told in its place."""
    sections: dict[str, Callable[[], str]] = {
        "Models and the 75 % gate": lambda: _models(e, models, notes),
        "Table 1: COSE in percent, mode published, harmonic mean, ours ± (paper)": lambda: _table(e),
        "Table 1 with the geometric mean, mode published": lambda: _table(e, "geometric"),
        "Table 1 in our own mode, default": lambda: _table(e.by(MODES[1])),
        "Parts, mode default, in percent, and numbers of pairs": lambda: _parts(e.by(MODES[1])),
        "Parts, mode published": lambda: _parts(e),
        "Figure 3: ConvNets and Transformers": lambda: _families(e),
        "Figure 5: do checkpoints' maps come nearer as accuracy rises": lambda: _accuracy(e),
        "Figure 6: consistency": lambda: _consistency(e),
        "Figure 7: by data set": lambda: _by_data(e),
        "Figure 8: by magnitude": lambda: _magnitudes(e),
        "Other similarities, mode default": lambda: _similarities(e),
    }
    parts = []
    for title, make in [*sections.items(), *((name, lambda make=make: make(e)) for name, make in MORE.items())]:
        try:
            text = make()
        except MissingError as why:
            text = f"Not run: {why}."
        parts.append(f"## {title}\n\n{text}")
    return "\n\n".join(parts)


def _models(e: Evidence, models: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> str:
    rows = []
    verdicts = {(gate.label, gate.data): gate for gate in gates(e.every)}
    for trained, told in zip(e.every, models, strict=True):
        gate = verdicts[trained.label, trained.of]
        theirs = accuracies().get((trained.of, trained.kin, VARIANT))
        backbone = "frozen" if trained.frozen else "full"
        rows.append(
            [
                trained.of, f"{trained.label}{'' if gate.passes else ' †'}", trained.family, trained.role, backbone,
                gate.words, f"{gate.accuracy:.1f}", f"{told['train']:,}", f"{told['epochs']}", f"{told['side']}",
                "-" if theirs is None else f"{trained.kin} {theirs:g}",
            ]
        )  # fmt: skip
    head = (
        "data", "model", "family", "for", "backbone", "gate", "test accuracy", "training images", "epochs", "side",
        "paper",
    )  # fmt: skip
    means = [gate for gate in gates(e.every) if gate.data.startswith("mean of")]
    said = [f"{gate.label}, {gate.data}: {gate.accuracy:.1f} %, {gate.words}." for gate in means]
    return "\n\n".join([grid(head, rows, 6), "† misses the gate; it stays in the tables.", *said, *notes])


def _table(e: Evidence, name: str = "harmonic") -> str:
    rows = []
    for (data, arch), models in rows_of(e).items():
        cells = _cells(e, name, models, lambda m, data=data, kin=models[0].kin: _paper(data, kin, m))  # type: ignore[misc]
        rows.append([data, f"{arch}{_dagger(models)}", models[0].kin, *cells])
    if not rows:
        raise MissingError("no model was run")
    rows.append([OVERALL, "", "", *_cells(e, name, e.models(), lambda m: _paper(OVERALL, OVERALL, m))])
    return grid(("data", "model", "stands for", *METHODS), rows, 3)


def _cells(e: Evidence, name: str, models: Sequence[Trained], paper: Callable[[str], str]) -> list[str]:
    """The best in bold, the second underlined, as the paper prints them."""
    found = {m: e.estimate(name, models, m) for m in METHODS}
    marks = marked(found)
    lacking = {m: f", {few}" if (few := e.lacking(models, m)) and len(models) > 1 else "" for m in METHODS}
    return [f"{marks[m][0]}{shown(one)}{marks[m][1]} ({paper(m)}{lacking[m]})" for m, one in found.items()]


def marked(found: Mapping[str, Estimate]) -> dict[str, tuple[str, str]]:
    """What goes before and after each value: the highest is bold, the second underlined."""
    order = sorted((m for m, one in found.items() if not np.isnan(one.value)), key=lambda m: -found[m].value)
    styles = dict(zip(order, (("**", "**"), ("<u>", "</u>")), strict=False))
    return {m: styles.get(m, ("", "")) for m in found}


def _dagger(models: Sequence[Trained]) -> str:
    return "" if all(gate.passes for gate in gates(models)) else " †"


def _paper(data: str, kin: str, method: str) -> str:
    found = table().get((data, kin, method))
    return "-" if found is None else f"{found:.2f}"


def _parts(e: Evidence) -> str:
    rows = []
    for model in e.models():
        for method in METHODS:
            if e.has(model, method):
                found = e.cose(model, method)
                cells = [shown(e.estimate(name, [model], method)) for name in PARTS]
                right = found.correct_only.estimate("harmonic")
                cells.append(shown(Estimate(*(100 * one for one in (right.value, right.low, right.high)))))
                kept, *moved = (
                    found.count(UNCHANGED, *DATA), found.count(CHANGED, *DATA), found.count(CHANGED, *MODELS)
                )  # fmt: skip
                numbers = [f"{kept:,}", f"{moved[0]:,} + {moved[1]:,}", f"{len(found.images)}"]
                rows.append([model.of, model.label, method, *cells, *numbers])
    if not rows:
        raise MissingError("no model was run")
    head = (
        "data",
        "model",
        "method",
        *PARTS.values(),
        "COSE, correct only",
        "unchanged",
        "changed, data + model",
        "images",
    )
    return grid(head, rows, 3)


def _families(e: Evidence) -> str:
    rows = []
    for method in METHODS:
        cells = []
        for family in (CONV, TRANSFORMER):
            cose, *parts = (
                shown(e.estimate(name, e.models(family=family), method))
                for name in ("harmonic", "consistency", "sensitivity")
            )
            cells += [f"{cose} ({mean(method, family=family):.2f})", *parts]
        rows.append([method, *cells])
    heads = [f"{family}: {word}" for family in (CONV, TRANSFORMER) for word in ("COSE (paper)", "c", "s")]
    return f"Means over {e.few()}, mode {e.mode}.\n\n" + grid(("method", *heads), rows)


def _accuracy(e: Evidence) -> str:
    without, with_last = ({one.method: one for one in followed(e, last)} for last in (False, True))
    if not without:
        raise MissingError("there are too few checkpoints with an accuracy")
    rows = [
        [m, f"{one.r:+.2f}", f"{one.p:.2g}", f"{one.points}"]
        + ([f"{last.r:+.2f}", f"{last.p:.2g}"] if (last := with_last.get(m)) else ["-", "-"])
        for m, one in without.items()
    ]
    said = (
        "Pearson's r of a checkpoint's accuracy and the similarity of its maps to the final model's, over checkpoints "
        "and the untrained copies of all models; then with the final model as a point at similarity 1, which methods "
        "that draw at random do not have."
    )
    return f"{said}\n\n" + grid(("method", "r", "p", "points", "r with the last", "p with the last"), rows)


def _consistency(e: Evidence) -> str:
    rows = [[m, *(shown(e.by(mode).estimate("consistency", e.models(), m)) for mode in MODES)] for m in METHODS]
    return grid(("method", *(f"mean consistency, {mode}" for mode in MODES)), rows)


def _by_data(e: Evidence) -> str:
    rows = []
    for data in e.data:
        found = {m: shown(e.estimate("harmonic", e.models(data=data), m)) for m in METHODS}
        theirs = {m: f"{mean(m, data=data):.2f}" if (data, "ResNet50", m) in table() else "-" for m in METHODS}
        rows.append([data, *(f"{found[m]} ({theirs[m]})" for m in METHODS)])
    if not rows:
        raise MissingError("no model was run")
    return grid(("data, ours (paper)", *METHODS), rows)


def _magnitudes(e: Evidence) -> str:
    rows, names = [], ("consistency", "sensitivity", "harmonic")
    for word, kinds in KINDS.items():
        try:
            found = [
                {name: shown(estimated(draws)) for name, draws in one.items()} for one in e.by_magnitude(kinds, *BANDS)
            ]
        except MissingError:
            found = [dict.fromkeys(names, "-")] * len(BANDS)
        for (low, high), cells in zip(BANDS, found, strict=True):
            rows.append([word, f"{low}-{high}", *(cells[name] for name in names)])
    said = (
        "Means over models and methods that have all three in every band, data pairs of the seven operations that have "
        f"a magnitude, mode {e.mode}."
    )
    return f"{said}\n\n" + grid(("operations", "bins", "c", "s", "COSE"), rows, 2)


def _similarities(e: Evidence) -> str:
    words = {"default": "SSIM", "pearson": "Pearson", "spearman": "Spearman"}
    columns = [(how, family) for how in ("default", *CORRELATIONS) for family in ("", CONV, TRANSFORMER)]
    rows = [
        [m, *(shown(e.estimate("harmonic", e.models(family=family), m, how)) for how, family in columns)]
        for m in METHODS
    ]
    return grid(("method", *(f"{words[how]}, {family or 'all'}" for how, family in columns)), rows)
