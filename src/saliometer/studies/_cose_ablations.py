"""What COSE's sheet asks for beside the table: frozen against full, a fixed target, first weights, the gate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from saliometer.studies._claims import MissingError
from saliometer.studies._cose_evidence import ABLATION, FIXED, TABLE, Evidence, Trained, estimated
from saliometer.studies._cose_paper import GATE, METHODS
from saliometer.summary import Estimate

STATISTICS = {  # of the summary -> what tables call it
    "harmonic": "COSE", "discrimination": "D", "consistency": "c", "sensitivity": "s", "sensitivity_model": "s model",
}  # fmt: skip
NO_FILES = (
    "no weight files were given, so supervised and self-supervised first weights cannot be compared: `--init ARCH=FILE`"
)


@dataclass(frozen=True)
class Compared:
    """A statistic of one method under two conditions, in percent."""

    data: str
    arch: str
    method: str
    statistic: str
    one: Estimate
    other: Estimate
    difference: Estimate


def frozen_and_full(e: Evidence) -> list[tuple[Trained, Trained]]:
    """Models that differ only in whether their backbone was trained."""
    every = [*e.models(role=ABLATION), *e.models(role=TABLE)]
    found = []
    for frozen in (one for one in every if one.frozen):
        same = [
            m for m in every if not m.frozen and (m.data, m.arch, m.init) == (frozen.data, frozen.arch, frozen.init)
        ]
        if same and ABLATION in (frozen.role, same[0].role):
            found.append((frozen, same[0]))
    return found


def frozen_against_full(e: Evidence) -> list[Compared]:
    return [one for pair in frozen_and_full(e) for one in _compared(e, *pair, ("", ""))]


def fixed_target(e: Evidence) -> list[Compared]:
    """Every map its own class, against every map the class of the image itself by the model itself."""
    return [one for model in e.models() for one in _compared(e, model, model, ("default", FIXED))]


def left(e: Evidence, method: str) -> tuple[Estimate, Estimate, Estimate]:
    """Sensitivity in percent, mean over models: with each map's own class, with a fixed one, and the share left."""
    models = [one for one in e.models() if e.has(one, method, FIXED) and e.has(one, method, "default")]
    own, fixed = (e.mean("sensitivity", models, [method], how) for how in ("default", FIXED))
    with np.errstate(invalid="ignore", divide="ignore"):
        return estimated(own), estimated(fixed), estimated(100 * fixed / own)


def _compared(e: Evidence, one: Trained, other: Trained, hows: tuple[str, str]) -> Iterator[Compared]:
    """On the images that both have: one of them may have been shown more."""
    sides = tuple(zip((one, other), hows, strict=True))
    for method in METHODS:
        if not all(e.has(model, method, how) for model, how in sides):
            continue
        known, others = (e.cose(model, method, how).images for model, how in sides)
        shared = [image for image in known if image in set(others)]
        for name in STATISTICS if shared else ():
            try:
                first, second = (e.of(name, model, method, how, shared) for model, how in sides)
            except MissingError:
                continue
            yield Compared(
                one.of, one.arch, method, name, estimated(first), estimated(second), estimated(second - first)
            )  # fmt: skip


def first_weights(e: Evidence) -> list[list[Trained]]:
    """Models that differ only in their first weights, two or more of them."""
    groups: dict[tuple[str, str], list[Trained]] = {}
    for model in e.models():
        groups.setdefault((model.data, model.arch), []).append(model)
    return [some for some in groups.values() if len(some) > 1]


@dataclass(frozen=True)
class Gate:
    """A model's accuracy in percent, one data set or the mean over all, and whether that is enough."""

    label: str
    data: str
    accuracy: float

    @property
    def passes(self) -> bool:
        return self.accuracy >= GATE

    @property
    def words(self) -> str:
        return f"{'passes' if self.passes else 'misses'} {GATE:g} %"


def gates(models: Sequence[Trained]) -> list[Gate]:
    """Of every model, and of every one that was trained on several data sets the mean, as the paper states it."""
    found = [Gate(one.label, one.of, 100 * one.accuracy) for one in models]
    for label in dict.fromkeys(one.label for one in models if one.role == TABLE):
        some = [100 * one.accuracy for one in models if one.label == label and one.role == TABLE]
        if len(some) > 1:
            found.append(Gate(label, f"mean of {len(some)} data sets", float(np.mean(some))))
    return found
