"""Better COSE, or smoother maps? Every method beside smoothed noise of the same grain, on the same pairs.

Noise of several sigmas is among the controls. Between two of them COSE is taken on a line, by how fine their maps are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saliometer.studies._claims import Draws, MissingError
from saliometer.studies._cose_evidence import Evidence, Trained, estimated
from saliometer.studies._cose_paper import CONV, METHODS, TRANSFORMER
from saliometer.summary import Estimate

NOISE = "smooth_noise("


@dataclass(frozen=True, eq=False)
class Beside:
    """A method on a model: its grain in pixels, its COSE in percent, and that of noise as fine."""

    model: Trained
    method: str
    grain: float
    cose: Draws
    noise: Draws
    beyond: bool = False  # coarser or finer than any of the noise, which then is the nearest

    @property
    def excess(self) -> Draws:
        found: Draws = self.cose - self.noise
        return found


def noises(e: Evidence, model: Trained) -> list[tuple[float, str]]:
    """The grain and name of every smoothed noise that a model was shown with, the finest first."""
    names = [name for name in e.controls(model) if name.startswith(NOISE)]
    return sorted((e.grain(model, name), name) for name in names)


def beside(e: Evidence, model: Trained, method: str) -> Beside:
    found, grain = e.cose(model, method), e.grain(model, method)
    known = noises(e, model)
    if not known:
        raise MissingError(f"no smoothed noise was run on {model.label}, {model.data}")
    sizes = np.array([size for size, _ in known])
    draws = np.stack([_of(e, model, name, found.images) for _, name in known])
    place = int(np.clip(np.searchsorted(sizes, grain), 1, max(1, len(sizes) - 1)))
    if len(sizes) == 1:
        noise = draws[0]
    else:
        span = sizes[place] - sizes[place - 1]
        share = float(np.clip((grain - sizes[place - 1]) / span, 0, 1)) if span else 0.0
        noise = (1 - share) * draws[place - 1] + share * draws[place]
    beyond = bool(grain < sizes[0] or grain > sizes[-1])
    return Beside(model, method, grain, e.of("harmonic", model, method), noise, beyond)


def _of(e: Evidence, model: Trained, name: str, images: Sequence[str]) -> Draws:
    """COSE of noise on some images; 0 where it is so fine that its consistency is not even above 0."""
    found = e.only(e.cose(model, name), images)
    kept, moved = (np.concatenate([getattr(one, word) for one in (found.whole, found.resampled)])
                   for word in ("consistency", "sensitivity"))  # fmt: skip
    kept = np.maximum(kept, 0)
    values: Draws = 100 * 2 * kept * moved / np.maximum(kept + moved, 1e-9)
    return values


def every(e: Evidence) -> list[Beside]:
    """All models of the table and methods that have both."""
    found = []
    for model in e.models():
        for method in METHODS:
            try:
                one = beside(e, model, method)
            except MissingError:
                continue
            if not np.isnan(one.noise[0]):
                found.append(one)
    return found


@dataclass(frozen=True)
class Answer:
    """Means over models and methods, Transformers minus ConvNets, in points of COSE; grains in pixels."""

    gap: Estimate
    noise: Estimate
    excess: Estimate
    grains: dict[str, float]  # by family
    excesses: dict[str, Estimate]
    few: str

    def sentences(self) -> list[str]:
        conv, other = self.grains[CONV], self.grains[TRANSFORMER]
        return [
            f"Transformers' COSE less ConvNets', mean over methods: {_told(self.gap)} points. Noise as fine as their "
            f"maps: {_told(self.noise)}, for Transformers' maps are {'coarser' if other > conv else 'finer'}, "
            f"{other:.1f} against {conv:.1f} pixels to half of the autocorrelation. What is left beyond that noise: "
            f"{_told(self.excess)}; {_verdict(self)}.",
            f"Above noise of the same grain ConvNets are by {_told(self.excesses[CONV])} points, Transformers by "
            f"{_told(self.excesses[TRANSFORMER])}. Intervals are over images; {self.few} are few, and they say nothing "
            "of other models.",
        ]


def _told(one: Estimate) -> str:
    return f"{one.value:+.1f} [{one.low:+.1f}, {one.high:+.1f}]"


def _verdict(answer: Answer) -> str:
    if answer.gap.low > 0 and answer.excess.low > 0:
        return "a better COSE, and not only by smoother maps"
    if answer.gap.low > 0:
        return "a better COSE that may be no more than smoother maps"
    if answer.excess.low > 0:
        return "no better COSE as it is, but a better one for maps so fine"
    return "no better COSE"


def answer(e: Evidence) -> Answer:
    """Over methods that a ConvNet and a Transformer both have; raises where there is nothing to compare."""
    found = every(e)
    sides = {family: [one for one in found if one.model.family == family] for family in (CONV, TRANSFORMER)}
    shared = [m for m in METHODS if all(any(one.method == m for one in some) for some in sides.values())]
    if not shared:
        raise MissingError("no method has both a ConvNet and a Transformer with noise of the same grain")

    def mean(family: str, name: str) -> Draws:
        by_method = [[getattr(one, name) for one in sides[family] if one.method == m] for m in shared]
        values: Draws = np.mean([np.mean(some, 0) for some in by_method], 0)
        return values

    def gap(name: str) -> Estimate:
        return estimated(mean(TRANSFORMER, name) - mean(CONV, name))

    return Answer(
        gap("cose"), gap("noise"), gap("excess"), {family: float(mean(family, "grain")) for family in sides},
        {family: estimated(mean(family, "excess")) for family in sides}, e.few(),
    )  # fmt: skip
