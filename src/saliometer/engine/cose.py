"""COSE in an audit: every image changed 48 ways and explained anew, and every other state of the model, pair by pair.

Maps are made once for each distinct (model, image), packed across pairs; predictions once for all methods. Rows hold
the similarity of each pair; what they amount to is made of rows (saliometer.cose.summary).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from saliometer.cose.controls import CONTROLS, Control
from saliometer.cose.operations import OPERATIONS, SMALLEST
from saliometer.cose.pairs import Pair, data_pairs
from saliometer.cose.scaling import family_scaled, finished, scaled
from saliometer.cose.summary import CHANGED, CORRECT, UNCHANGED
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.checkpoints import Checkpoints, states
from saliometer.engine.compared import Rows, notes_of
from saliometer.engine.score import Failure, Method, attributions
from saliometer.registry import Entry, Facts, Spec, one_of
from saliometer.seeds import fork, forks
from saliometer.types import Batch, Model, Samples, Scored

CLOSE = 0.02  # levels that an image may be off 8 bits and still be taken for one of them


@dataclass(frozen=True, eq=False)
class Compared:
    """One change of every image, or of the model: how alike the maps are, and whether the prediction changed."""

    definition: str
    conditions: list[str]  # one for each image
    scored: Scored  # on the device
    changed: Tensor  # (N,) bool


class Paired:
    """The measures of pairs that an audit was asked for, with the other states of its model."""

    name = "cose"

    def __init__(
        self, measures: Sequence[Measure], answers: Answers, checkpoints: Checkpoints | None, seed: int, classes: int
    ) -> None:
        self.measures, self.answers, self.classes = measures, answers, classes
        found, self.said = states(answers.model.net, checkpoints, seed)
        self.others = {one.label: self._answers(one.net, one.sha256) for one in found}
        self.marks: dict[str, str] = {one.label: one.sha256 for one in found}
        self._chunk: Chunk | None = None

    def _answers(self, net: torch.nn.Module, mark: str) -> Answers:
        for values in net.parameters():
            values.requires_grad_(False)
        model = replace(self.answers.model, net=net.eval(), fingerprint=mark)
        return Answers(model, self.answers.device, self.answers.size, align=self.answers.align)

    @property
    def again(self) -> int:
        """How many explanations an image takes beside its own."""
        several = {(_names(one), _params(one)["magnitudes"], _params(one)["fixed_target"]) for one in self.measures}
        one_seed = torch.zeros(1, dtype=torch.int64)
        return sum(len(data_pairs(one_seed, names, count)) + len(self.others) for names, count, _ in several)

    @property
    def predicted(self) -> int:
        return self.again

    @property
    def beside(self) -> int:
        return 0

    @cached_property
    def controls(self) -> list[Method]:
        return [_as_method(name, function, self.classes) for name, function in CONTROLS.items()]

    def rows(self, method: Method, maps: Tensor, samples: Samples) -> list[Rows]:
        """Every pair of every measure; `maps` are the method's of the images themselves."""
        if self._chunk is None or self._chunk.samples is not samples:
            self._chunk = Chunk(samples, self.answers, self.others)
        before = self.answers.shared
        self.answers.shared = None  # these are other images
        try:
            found = _fetched(list(self._compared(method, maps, self._chunk)))
            count, right = len(samples), self._chunk.right.tolist()
            every = [measure.definition for measure in self.measures]
            return found + [Rows(one, [CORRECT] * count, [""] * count, right, [""] * count) for one in every]
        finally:
            self.answers.shared = before

    def _compared(self, method: Method, maps: Tensor, chunk: "Chunk") -> Iterator[Compared]:
        own = maps if chunk.on_levels else _explained(method, self.answers, chunk.batch)
        for names, count, fixed in dict.fromkeys(_asked(measure) for measure in self.measures):
            measures = [measure for measure in self.measures if _asked(measure) == (names, count, fixed)]
            firsts = [read(own, method, measure) for measure in measures]
            pairs = chunk.pairs(names, count)
            for pair, changed, others in self._explained_pairs(method, chunk, pairs, fixed):
                labels = pair.labels(others.shape)
                for measure, one in zip(measures, firsts, strict=True):
                    back = pair.undone(read(others, method, measure))
                    valid = chunk.valid(pair, partly=_params(measure)["mode"] == "published")
                    yield Compared(measure.definition, labels, similarity(measure, one, back, valid), changed)
            for label, answers in self.others.items():
                predicted = chunk.predicted_by(label)
                targets = chunk.predicted if fixed else predicted
                batch = replace(chunk.batch, targets=targets, seeds=_seeds(chunk.batch, label))
                others = _explained(method, answers, batch)
                self.answers.passes, answers.passes = self.answers.passes + answers.passes, 0
                for measure, one in zip(measures, firsts, strict=True):
                    scored = similarity(measure, one, read(others, method, measure))
                    yield Compared(measure.definition, [label] * len(own), scored, predicted != chunk.predicted)

    def _explained_pairs(
        self, method: Method, chunk: "Chunk", pairs: Sequence[Pair], fixed: bool
    ) -> Iterator[tuple[Pair, Tensor, Tensor]]:
        """Each pair with whether its prediction changed (N,) and its maps (N, C, H, W), explained in full batches."""
        together = max(1, self.answers.size // len(chunk.samples))
        for start in range(0, len(pairs), together):
            some = pairs[start : start + together]
            images = torch.cat([chunk.input(pair.images(chunk.pixels)) for pair in some])
            predicted = chunk.predictions(some, images)  # (pairs, N)
            targets = chunk.predicted.repeat(len(some)) if fixed else predicted.flatten()
            seeds = torch.cat([_seeds(chunk.batch, f"{pair.name} {pair.draw}") for pair in some])
            found = _explained(method, self.answers, replace(chunk.batch, images=images, targets=targets, seeds=seeds))
            for pair, classes, maps in zip(some, predicted, found.unflatten(0, (len(some), -1)), strict=True):
                yield pair, classes != chunk.predicted, maps


class Chunk:
    """Images that are judged together: their pixels in 8 bits, their pairs, and what every model predicts."""

    def __init__(self, samples: Samples, answers: Answers, others: Mapping[str, Answers]) -> None:
        self.samples, self._answers, self._others = samples, answers, others
        levels = answers.model.pixels(samples.batch.images) * 255
        self.pixels = levels.round().clamp(0, 255).to(torch.uint8)
        self.on_levels = bool((levels - self.pixels).abs().max() < CLOSE)  # else the image itself is rounded, too
        images = samples.batch.images if self.on_levels else self.input(self.pixels)
        self.predicted = answers.predicted(images)
        self.batch = replace(samples.batch, images=images, targets=self.predicted)
        right = (self.predicted == samples.labels).double()
        self.right = right.where(samples.labels >= 0, torch.nan)
        self._found: dict[object, Tensor] = {}
        self._valid: dict[tuple[Pair, bool], Tensor | None] = {}
        self._pairs: dict[tuple[tuple[str, ...], int], list[Pair]] = {}

    def input(self, pixels: Tensor) -> Tensor:
        """8-bit pixels as the model takes them."""
        model = self._answers.model
        images = pixels.to(torch.float32) / 255
        mean, std = (model.channels(images, values) for values in (model.mean, model.std))
        return (images - mean) / std

    def pairs(self, names: tuple[str, ...], count: int) -> list[Pair]:
        if (names, count) not in self._pairs:
            self._pairs[names, count] = data_pairs(self.samples.batch.seeds, names, count)
        return self._pairs[names, count]

    def predictions(self, pairs: Sequence[Pair], images: Tensor) -> Tensor:
        """(pairs, N): found once for all methods."""
        if any(pair not in self._found for pair in pairs):
            found = self._answers.predicted(images).unflatten(0, (len(pairs), -1))
            self._found |= dict(zip(pairs, found, strict=True))
        return torch.stack([self._found[pair] for pair in pairs])

    def valid(self, pair: Pair, partly: bool) -> Tensor | None:
        """Found once for all methods; None where all pixels are."""
        if (pair, partly) not in self._valid:
            self._valid[pair, partly] = pair.valid(self.batch.images[:, 0], partly)
        return self._valid[pair, partly]

    def predicted_by(self, label: str) -> Tensor:
        if label not in self._found:
            self._found[label] = self._others[label].predicted(self.batch.images)
        return self._found[label]


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


def _asked(measure: Measure) -> tuple[tuple[str, ...], int, bool]:
    """What decides which maps are made: operations, magnitudes, and whether they explain the first prediction."""
    params = _params(measure)
    return _names(measure), int(params["magnitudes"]), bool(params["fixed_target"])


def _seeds(batch: Batch, purpose: str) -> Tensor:
    """A method that draws draws anew for each pair."""
    return forks(fork("cose", purpose), batch.seeds)


def _explained(method: Method, answers: Answers, batch: Batch) -> Tensor:
    found = attributions([method], answers, batch)[method.label]
    if isinstance(found, Failure):
        raise found.error
    return found.maps


def read(maps: Tensor, method: Method, measure: Measure) -> Tensor:
    """(N, H, W): as the mode scales them; masks are finished already."""
    if method.entry.facts.mask:
        return finished(maps)
    return family_scaled(maps, method.spec.name) if _params(measure)["mode"] == "published" else scaled(maps)


def similarity(measure: Measure, maps: Tensor, others: Tensor, valid: Tensor | None = None) -> Scored:
    params = _params(measure)
    scored: Scored = measure.entry.function(maps, others, valid, mode=params["mode"], similarity=params["similarity"])
    return scored


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


def _as_method(name: str, function: Control, classes: int) -> Method:
    """A degenerate control as a method whose maps are not scaled; it is told the class it is to explain."""

    def explain(model: Model, batch: Batch) -> Tensor:
        return function(model.pixels(batch.images).clamp(0, 1), batch.targets, batch.seeds, classes)

    facts = Facts(control=True, mask=True)
    return Method(name, Entry(name, explain, facts), Spec(name), f"cose control {name}")
