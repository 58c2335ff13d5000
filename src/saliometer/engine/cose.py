"""COSE in an audit: every image changed 48 ways and explained anew, and every other state of the model, pair by pair.

Maps are made once for each distinct (model, image), packed across pairs; predictions once for all methods. Rows hold
the similarity of each pair; what they amount to is made of rows (saliometer.cose.summary).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from saliometer.cose.controls import CONTROLS, Control, smooth_noise
from saliometer.cose.grain import grain
from saliometer.cose.operations import OPERATIONS, SMALLEST
from saliometer.cose.pairs import data_pairs
from saliometer.cose.scaling import family_scaled, finished, scaled
from saliometer.cose.table import CHANGED, CORRECT, FLAT, GRAIN, UNCHANGED
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.checkpoints import Checkpoints, states
from saliometer.engine.compared import Rows, notes_of
from saliometer.engine.cose_chunk import Changes, Chunk, explained
from saliometer.engine.cose_pictures import IMAGES, chosen
from saliometer.engine.score import Method
from saliometer.registry import Entry, Facts, Spec, one_of
from saliometer.types import Batch, Model, Samples, Scored


@dataclass(frozen=True, eq=False)
class Compared:
    """One change of every image, or of the model: how alike the maps are, and whether the prediction changed."""

    definition: str
    conditions: list[str]  # one for each image
    scored: Scored  # on the device
    changed: Tensor  # (N,) bool


class Paired:
    """The measures of pairs that an audit was asked for, with the other states of its model.

    `grains` are the sigmas, in pixels, of further controls: noise that is read as a method's maps are.
    """

    name = "cose"

    def __init__(
        self, measures: Sequence[Measure], answers: Answers, checkpoints: Checkpoints | None, seed: int, classes: int,
        grains: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self.measures, self.answers, self.classes, self.grains = measures, answers, classes, grains
        found, self.said = states(answers.model.net, checkpoints, seed)
        self.others = {one.label: self._answers(one.net, one.sha256) for one in found}
        self.marks: dict[str, str] = {one.label: one.sha256 for one in found}
        self._chunk: Chunk | None = None
        self._shown: list[Tensor] = []  # maps of a few images under every change, by the first measure

    def _answers(self, net: torch.nn.Module, mark: str) -> Answers:
        for values in net.parameters():
            values.requires_grad_(False)
        model = replace(self.answers.model, net=net.eval(), fingerprint=mark)
        return Answers(model, self.answers.device, self.answers.size, align=self.answers.align)

    @property
    def again(self) -> int:
        """How many explanations an image takes beside its own; those of a second target are not known before."""
        one_seed = torch.zeros(1, dtype=torch.int64)
        several = dict.fromkeys(map(_drawn, self.measures))
        return sum(len(data_pairs(one_seed, names, count)) + len(self.others) for names, count in several)

    @property
    def predicted(self) -> int:
        return self.again

    @property
    def beside(self) -> int:
        return 0

    @cached_property
    def controls(self) -> list[Method]:
        noises = {f"smooth_noise(sigma={sigma:g})": partial(_noise, sigma=sigma) for sigma in self.grains}
        return [_as_method(name, function, self.classes, mask=True) for name, function in CONTROLS.items()] + [
            _as_method(name, function, self.classes, mask=False) for name, function in noises.items()
        ]

    def rows(self, method: Method, maps: Tensor, samples: Samples) -> list[Rows]:
        """Every pair of every measure; `maps` are the method's of the images themselves."""
        if self._chunk is None or self._chunk.samples is not samples:
            self._chunk = Chunk(samples, self.answers, self.others)
        before = self.answers.shared
        self.answers.shared = None  # these are other images
        try:
            own = maps if self._chunk.on_levels else explained(method, self.answers, self._chunk.batch)
            self._shown = []
            found = _fetched(list(self._compared(method, own, self._chunk)))
            right, empty = self._chunk.right.tolist(), [""] * len(samples)
            unlabelled = ["" if one == one else "no label" for one in right]
            for measure in self.measures:
                found.append(Rows(measure.definition, [CORRECT] * len(samples), empty, right, unlabelled))
                maps_read = read(own, method, measure)
                sizes, whole = grain(maps_read).tolist(), maps_read.flatten(1).isfinite().all(1).tolist()
                notes = [
                    "" if size == size else FLAT if good else "nan map" for size, good in zip(sizes, whole, strict=True)
                ]
                found.append(Rows(measure.definition, [GRAIN] * len(samples), empty, sizes, notes))
            return found
        finally:
            self.answers.shared = before

    def pictures(self, method: Method, maps: Tensor, rows: Sequence[Rows]) -> dict[str, Any]:
        """A few of the pairs that `rows` has just compared, as arrays."""
        measure = self.measures[0]
        compared = [one for one in rows if one.definition == measure.definition and one.conditions[0]]
        return chosen(read(maps, method, measure), self._shown, compared)

    def _compared(self, method: Method, own: Tensor, chunk: Chunk) -> Iterator[Compared]:
        for names, count in dict.fromkeys(map(_drawn, self.measures)):
            measures = [measure for measure in self.measures if _drawn(measure) == (names, count)]
            kinds = sorted({bool(_params(measure)["fixed_target"]) for measure in measures})
            firsts = {_reading(measure): read(own, method, measure) for measure in measures}
            for changes in chunk.changes(method, names, count, kinds):
                laid: dict[tuple[bool, str], Tensor] = {}  # measures that read maps alike share them
                for measure in measures:
                    kind = bool(_params(measure)["fixed_target"]), _reading(measure)
                    if kind not in laid:
                        flat = read(changes.maps[kind[0]].flatten(0, 1), method, measure)
                        each = flat.unflatten(0, changes.changed.shape)
                        laid[kind] = changes.undone(each)
                        if measure is self.measures[0]:
                            self._shown += each[:, :IMAGES].clone().unbind()
                    found = similarities(measure, firsts[kind[1]], laid[kind], changes, chunk)
                    for place, scored in enumerate(found):
                        yield Compared(measure.definition, changes.conditions[place], scored, changes.changed[place])


def check(measures: Sequence[Measure], target: str, labelled: bool, shape: Sequence[int]) -> None:
    """Raise for what cannot be measured, before anything is made: `shape` is that of the images, (..., C, H, W)."""
    if target != "predicted":
        raise ValueError(f"metric 'cose' explains what is predicted, but target is '{target}': leave it away")
    if min(shape[-2:]) < SMALLEST:
        height, width = shape[-2:]
        raise ValueError(f"metric 'cose' wants images of {SMALLEST} pixels a side or more, these are {height}x{width}")
    if shape[-3] not in (1, 3):
        raise ValueError(f"metric 'cose' changes colour or grey images, 3 or 1 channels; these have {shape[-3]}")
    for measure in measures:
        params = _params(measure)
        nothing = torch.zeros(1, 5, 5)
        measure.entry.function(nothing, nothing, mode=params["mode"], similarity=params["similarity"])
        data_pairs(torch.zeros(1, dtype=torch.int64), _names(measure), params["magnitudes"])
        if params["mode"] == "published" and not labelled:
            raise ValueError(
                "cose(mode=published) counts only images that the model gets right, but the images came without "
                "labels: give labels, or take mode=default"
            )


def _params(measure: Measure) -> dict[str, Any]:
    return measure.entry.parameters | measure.parameters


def _names(measure: Measure) -> tuple[str, ...]:
    given = str(_params(measure)["operations"])
    names = [name.strip() for name in given.split(",")]
    chosen = OPERATIONS if given == "all" else [one_of("operation", name, OPERATIONS) for name in names]
    return tuple(chosen)


def _drawn(measure: Measure) -> tuple[tuple[str, ...], int]:
    """What decides which pairs there are: operations and magnitudes."""
    return _names(measure), int(_params(measure)["magnitudes"])


def _reading(measure: Measure) -> str:
    """How maps are scaled."""
    return "by family" if _params(measure)["mode"] == "published" else "one rule"


def read(maps: Tensor, method: Method, measure: Measure) -> Tensor:
    """(N, H, W): as the mode scales them; masks are finished already."""
    if method.entry.facts.mask:
        return finished(maps)
    return family_scaled(maps, method.spec.name) if _reading(measure) == "by family" else scaled(maps)


def similarity(measure: Measure, maps: Tensor, others: Tensor, valid: Tensor | None = None) -> Scored:
    params = _params(measure)
    scored: Scored = measure.entry.function(maps, others, valid, mode=params["mode"], similarity=params["similarity"])
    return scored


def similarities(measure: Measure, maps: Tensor, laid: Tensor, changes: Changes, chunk: Chunk) -> list[Scored]:
    """Of each change: those that have a mask together, and those that have none."""
    partly = _params(measure)["mode"] == "published"
    masks = [chunk.valid(pair, partly) for pair in changes.pairs] or [None]
    found: dict[int, Scored] = {}
    for masked in (True, False):
        places = [place for place, mask in enumerate(masks) if (mask is not None) == masked]
        if not places:
            continue
        valid = torch.cat([mask for mask in masks if mask is not None]) if masked else None
        others = laid.flatten(0, 1) if len(places) == len(masks) else torch.cat([laid[place] for place in places])
        scored = similarity(measure, maps.repeat(len(places), 1, 1), others, valid)
        values = scored.values.unflatten(0, (len(places), -1))
        reasons = {why: where.unflatten(0, (len(places), -1)) for why, where in scored.invalid.items()}
        for number, place in enumerate(places):
            found[place] = Scored(values[number], invalid={why: where[number] for why, where in reasons.items()})
    return [found[place] for place in range(len(masks))]


def _fetched(several: Sequence[Compared]) -> list[Rows]:
    """All at once from the device."""
    values = torch.stack([one.scored.values for one in several]).tolist()
    changed = torch.stack([one.changed for one in several]).tolist()
    invalid = torch.stack([torch.stack(list(one.scored.invalid.values())) for one in several]).tolist()
    found = []
    for one, numbers, moved, bad in zip(several, values, changed, invalid, strict=True):
        notes = notes_of(one.scored.invalid, bad, len(numbers))
        metrics = [CHANGED if yes else UNCHANGED for yes in moved]
        found.append(Rows(one.definition, metrics, one.conditions, numbers, notes))
    return found


def _noise(pixels: Tensor, classes: Tensor, seeds: Tensor, count: int, *, sigma: float) -> Tensor:
    return smooth_noise(pixels, seeds, sigma)


def _as_method(name: str, function: Control, classes: int, mask: bool) -> Method:
    """A degenerate control as a method; it is told the class it is to explain. A mask's maps are not scaled."""

    def explain(model: Model, batch: Batch) -> Tensor:
        return function(model.pixels(batch.images).clamp(0, 1), batch.targets, batch.seeds, classes)

    facts = Facts(control=True, mask=mask)
    return Method(name, Entry(name, explain, facts), Spec(name.partition("(")[0]), f"cose control {name}")
