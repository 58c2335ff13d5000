"""Controls, noise of the same grain and ablations of COSE's study as Markdown."""

from collections.abc import Callable, Sequence

from saliometer.cose.summary import CHANCE
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_ablations import (
    NO_FILES,
    STATISTICS,
    Compared,
    first_weights,
    fixed_target,
    frozen_against_full,
    left,
)
from saliometer.studies._cose_evidence import MODES, Evidence, estimated
from saliometer.studies._cose_grain import answer, every
from saliometer.studies._cose_paper import METHODS, table
from saliometer.studies._markdown import grid, shown


def controls(e: Evidence) -> str:
    models = [one for one in e.models() if e.controls(one)]
    if not models:
        raise MissingError("the controls were not run")
    names = dict.fromkeys(name for one in models for name in e.controls(one))
    words = {"harmonic": "COSE", "consistency": "c", "sensitivity": "s", "sensitivity_model": "s model"}
    rows = [
        [name, *(shown(e.by(mode).estimate(word, models, name)) for mode in MODES for word in words)] for name in names
    ]
    said = (
        f"Means over models. Chance cannot pass {100 * CHANCE:g}: 2 c (1 - c). The highest cell of the paper's table "
        f"is {max(table().values())}. COSE has no value (-) where consistency is 0 or less."
    )
    return f"{said}\n\n" + grid(("control", *(f"{mode}: {word}" for mode in MODES for word in words.values())), rows)


def grain(e: Evidence) -> str:
    found = every(e)
    if not found:
        raise MissingError("no method was run beside noise of several grains")
    rows = [
        [
            one.model.of, one.model.label, one.model.family, one.method, f"{one.grain:.2f}{' ‡' * one.beyond}",
            shown(estimated(one.cose)), shown(estimated(one.noise)), shown(estimated(one.excess)),
        ]
        for one in found
    ]  # fmt: skip
    head = ("data", "model", "family", "method", "grain, px", "COSE", "noise of that grain", "difference")
    said = " ".join(answer(e).sentences())
    return f"{said}\n\n{grid(head, rows, 4)}\n\n‡ beyond the grains of the noise; the nearest is taken."


def frozen(e: Evidence) -> str:
    found = frozen_against_full(e)
    if not found:
        raise MissingError("no network was trained both frozen and in full")
    return _beside(found, "frozen", "full")


def fixed(e: Evidence) -> str:
    rows = []
    for method in METHODS:
        try:
            rows.append([method, *(shown(one) for one in left(e, method))])
        except MissingError:
            continue
    if not rows:
        raise MissingError("no method was run with a fixed target")
    head = ("method", "sensitivity, own class", "sensitivity, fixed class", "percent left")
    return f"Means over models.\n\n{grid(head, rows)}\n\n{_beside(fixed_target(e), 'own', 'fixed')}"


def weights(e: Evidence) -> str:
    groups = first_weights(e)
    if not groups:
        return f"{NO_FILES[0].upper()}{NO_FILES[1:]}."
    rows = [
        [one.of, one.arch, one.init, f"{100 * one.accuracy:.1f}"]
        + [shown(e.estimate("harmonic", [one], m)) for m in METHODS]
        for some in groups
        for one in some
    ]
    return grid(("data", "model", "first weights", "accuracy", *METHODS), rows, 3)


def _beside(found: Sequence[Compared], one: str, other: str) -> str:
    rows = []
    for where in dict.fromkeys((c.data, c.arch, c.method) for c in found):
        held = {c.statistic: c for c in found if (c.data, c.arch, c.method) == where}
        cells = [f"{shown(held[n].one)} → {shown(held[n].other)}" if n in held else "-" for n in STATISTICS]
        rows.append([*where, *cells])
    return grid(("data", "model", "method", *(f"{word}, {one} → {other}" for word in STATISTICS.values())), rows, 3)


MORE: dict[str, Callable[[Evidence], str]] = {  # headings, in order
    "Controls, which explain nothing, on the same pairs": controls,
    "Better COSE, or smoother maps? Mode default": lambda e: grain(e.by(MODES[1])),
    "Better COSE, or smoother maps? Mode published": grain,
    "Ablation: frozen backbone against full fine-tuning, mode default": lambda e: frozen(e.by(MODES[1])),
    "Ablation: every map explains the first prediction, mode default": fixed,
    "First weights: supervised against self-supervised": weights,
}
