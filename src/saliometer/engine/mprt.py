"""The randomisation tests in an audit: layers are drawn anew in place, and every image is explained in every state.

One explanation for each distinct state of the model and image, whatever orders, similarities and variants are asked
for; the maps of the model itself are read once. Weights change where they are, layer by layer, and come back at the
end. Rows hold the similarity of every stage; what they amount to is made of rows (saliometer.sanity.summary).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.compared import Rows, notes_of
from saliometer.engine.device import exact
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, Method, attributions
from saliometer.graph import Network
from saliometer.metrics._randomised import scored
from saliometer.perturb import filled
from saliometer.sanity.layers import Layer, layers_in_order
from saliometer.sanity.plan import Stage, stages
from saliometer.sanity.randomise import Weights
from saliometer.sanity.similarity import Similarity, similarity
from saliometer.seeds import fork, forks, normal
from saliometer.types import Batch, Model, Samples, Scored


@dataclass(frozen=True)
class View:
    """What decides the maps in a state, beside the method."""

    own: bool  # the state's own prediction is explained
    samples: int = 0  # noisy copies that maps are averaged over; 0 for the image alone
    noise: float = 0.0
    divided: bool = False  # by the input multiplier


@dataclass(frozen=True, eq=False)
class Test:
    """A measure with its parameters read."""

    measure: Measure
    params: dict[str, Any]

    @property
    def view(self) -> View:
        copies = {word: self.params[word] for word in ("samples", "noise") if "samples" in self.params}
        divided = self.params.get("multiplier") == "divide"
        return View(self.params["target"] == "own", divided=divided, **copies)

    @property
    def group(self) -> tuple[str, str, str]:
        """What decides which weights are drawn: tests that share it share states."""
        return self.params.get("by", "block"), self.params.get("layers", "all"), self.params["norms"]

    @property
    def order(self) -> str:
        return str(self.params.get("order", "full"))


@dataclass(frozen=True, eq=False)
class State:
    """Layers that are drawn anew, and who asks for it under which name."""

    draw: int
    chosen: frozenset[int]
    asked: list[tuple[Test, Stage]]

    @property
    def views(self) -> list[View]:
        return list(dict.fromkeys(test.view for test, _ in self.asked))

    @property
    def label(self) -> str:
        return f"{self.draw} {sorted(self.chosen)}"


@dataclass(frozen=True, eq=False)
class Group:
    """States of the same layers."""

    tests: list[Test]
    layers: list[Layer]
    weights: Weights

    @cached_property
    def states(self) -> list[State]:
        found: dict[tuple[int, frozenset[int]], State] = {}
        names = [layer.name for layer in self.layers]
        for draw in range(max(test.params["draws"] for test in self.tests)):
            for test in self.tests:
                for stage in stages(test.order, names) if draw < test.params["draws"] else ():
                    key = draw, stage.chosen
                    found.setdefault(key, State(*key, [])).asked.append((test, stage))
        return list(found.values())


@dataclass(frozen=True, eq=False)
class Found:
    """One stage of one test, still on the device."""

    test: Test
    condition: str
    scored: Scored | str  # or why there is none


ITSELF = -1, ""  # the model with its own weights, in the place of a group and a state


class Randomised:
    """The randomisation tests that an audit was asked for. `references` are what batch norms are estimated on.

    `target` is the class that the audit explains; where that is not the predicted one, tests of `target=own` explain
    that of the model itself too.
    """

    name = "mprt"

    def __init__(
        self, measures: Sequence[Measure], answers: Answers, image: Tensor, references: Tensor, seed: int,
        target: str = "predicted",
    ) -> None:  # fmt: skip
        self.answers, net, self.target = answers, answers.model.net, target
        tests = [Test(one, one.entry.parameters | one.parameters) for one in measures]
        self.groups = []
        for by, names, norms in dict.fromkeys(test.group for test in tests):
            some = [test for test in tests if test.group == (by, names, norms)]
            layers = layers_in_order(net, image, by=by, only=_names(names))
            weights = Weights(net, layers, seed=seed, norms=norms, references=references)
            self.groups.append(Group(some, layers, weights))
        self.controls = [one_method("input")]  # what a method that multiplies by the image has of it
        self.marks: dict[str, str] = {}
        self.said: list[str] = []
        self._samples: Samples | None = None
        self._predicted: dict[tuple[int, str], Tensor] = {}  # (group, state) -> classes of the chunk

    @property
    def again(self) -> int:
        views = {test.view for group in self.groups for test in group.tests}
        itself = sum(view.samples or (view.own and self.target != "predicted") for view in views)
        return itself + sum(max(1, view.samples) for group in self.groups for s in group.states for view in s.views)

    @property
    def predicted(self) -> int:
        every = [state.views for group in self.groups for state in group.states]
        itself = self.target != "predicted" and any(view.own for views in every for view in views)
        return itself + sum(any(view.own for view in views) for views in every)

    @property
    def beside(self) -> int:
        """What batch norms are estimated on, state by state."""
        return sum(len(group.states) * group.weights.count for group in self.groups if group.weights.statistics)

    def rows(self, method: Method, maps: Tensor, samples: Samples) -> list[Rows]:
        if self._samples is not samples:
            self._samples, self._predicted = samples, {}
        before, self.answers.shared = self.answers.shared, None  # these are other models
        try:
            found = list(self._found(method, maps, samples.batch))
        finally:
            self.answers.shared = before
        failed = [one.scored for one in found if isinstance(one.scored, str)]
        if len(failed) == len(found):
            raise ValueError(failed[0])
        return _fetched(found, len(samples))

    def pictures(self, method: Method, maps: Tensor, rows: Sequence[Rows]) -> dict[str, Any]:
        return {}

    def _found(self, method: Method, maps: Tensor, batch: Batch) -> Iterator[Found]:
        tests = [test for group in self.groups for test in group.tests]
        predicted = batch.targets
        if self.target != "predicted" and any(test.view.own for test in tests):
            if ITSELF not in self._predicted:
                self._predicted[ITSELF] = self.answers.predicted(batch.images)
            predicted = self._predicted[ITSELF]
        own = Own(tests, method, maps, batch, self.answers, predicted)
        for number, group in enumerate(self.groups):
            with group.weights:
                for state in group.states:
                    with exact():
                        self.answers.passes += group.weights.become(state.chosen, state.draw)
                    Network(self.answers.model.net, self.answers.model.logits).look_again()
                    answers = self._answers(f"{number} {state.label}")
                    for view in state.views:
                        others = self._explained(method, answers, batch, view, (number, state.label))
                        for test, stage in state.asked:
                            if test.view == view:
                                condition = stage.condition(test.order, state.draw)
                                yield Found(test, condition, own.compared(test, others))
                    self.answers.size = min(self.answers.size, answers.size)  # memory may have run out

    def _answers(self, label: str) -> Answers:
        """Of the model as it is now; nothing that was known of it before is believed."""
        main = self.answers

        def watch(images: int) -> None:
            main.passes += images
            main.watch(images)

        model = replace(main.model, fingerprint=f"{main.model.fingerprint} randomised {label}")
        return Answers(model, main.device, main.size, align=main.align, watch=watch)

    def _explained(
        self, method: Method, answers: Answers, batch: Batch, view: View, state: tuple[int, str]
    ) -> Tensor | str:
        """Maps (N, C, H, W), or why there are none."""
        if view.own:
            if state not in self._predicted:
                self._predicted[state] = answers.predicted(batch.images)
            batch = replace(batch, targets=self._predicted[state])
        fresh = replace(batch, seeds=forks(fork("randomised", *state), batch.seeds))  # what draws draws anew
        self.answers.doing = f"{method.label}, {self.name}"
        try:
            return explained(method, answers, fresh, view, noise_by=batch.seeds)
        except MemoryError:
            raise
        except Exception as error:
            return f"failed: {type(error).__name__}: {error}"


class Own:
    """The maps of the model itself, made and read once for every test while its weights are its own.

    `maps` explain the batch's targets; `predicted` are what the model predicts, the very same tensor if it is those.
    """

    def __init__(
        self, tests: Sequence[Test], method: Method, maps: Tensor, batch: Batch, answers: Answers, predicted: Tensor
    ) -> None:
        factor = multiplier(method, answers.model, batch)
        self._same = predicted is batch.targets
        self._maps: dict[View, Tensor] = {}
        for view in dict.fromkeys(map(self._view, tests)):
            if view.samples or view.own:
                which = replace(batch, targets=predicted) if view.own else batch
                self._maps[view] = explained(method, answers, which, view, batch.seeds)
            else:
                self._maps[view] = divided(maps, factor) if view.divided else maps
        self._read: dict[Test, tuple[Similarity, Tensor]] = {}
        for test in tests:
            if "similarity" in test.params:
                counted = test.params["multiplier"] == "keep" or factor is None
                valid = None if counted or factor is None else (factor != 0).any(1)
                kind = similarity(test.params["similarity"], maps.shape, test.params["scaling"], valid)
                self._read[test] = kind, kind.read(self.maps(test))

    def _view(self, test: Test) -> View:
        return replace(test.view, own=test.view.own and not self._same)

    def maps(self, test: Test) -> Tensor:
        return self._maps[self._view(test)]

    def compared(self, test: Test, others: Tensor | str) -> Scored | str:
        if isinstance(others, str):
            return others
        if test not in self._read:
            found: Scored = test.measure.entry.function(self.maps(test), others, **test.measure.parameters)
            return found
        kind, first = self._read[test]
        return scored(kind.compare(first, kind.read(others)), self.maps(test), others, kind.why)


def explained(method: Method, answers: Answers, batch: Batch, view: View, noise_by: Tensor) -> Tensor:
    """The maps of a view (N, C, H, W); copies are packed into full batches, their noise is by image alone."""
    if not view.samples:
        return _local(method, answers, batch, view)
    together = max(1, answers.size // len(batch))
    total = torch.zeros_like(batch.images[:, :1])
    for start in range(0, view.samples, together):
        ks = range(start, min(start + together, view.samples))
        images = torch.cat([noisy(batch.images, noise_by, k, view) for k in ks])
        seeds = torch.cat([forks(fork("smooth", k), batch.seeds) for k in ks])
        several = Batch(images, batch.targets.repeat(len(ks)), seeds, batch.references)
        for maps in _local(method, answers, several, view).unflatten(0, (len(ks), -1)):
            total = total + maps  # in the order of copies, whatever the packing
    return total / view.samples


def noisy(images: Tensor, seeds: Tensor, copy: int, view: View) -> Tensor:
    """The k-th copy; the last is clean."""
    if copy == view.samples - 1:
        return images
    spread = images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True)
    return images + view.noise * spread * normal(seeds, f"smooth_mprt {copy}", like=images)


def _local(method: Method, answers: Answers, batch: Batch, view: View) -> Tensor:
    found = attributions([method], answers, batch)[method.label]
    if isinstance(found, Failure):
        raise found.error
    return divided(found.maps, multiplier(method, answers.model, batch)) if view.divided else found.maps


def multiplier(method: Method, model: Model, batch: Batch) -> Tensor | None:
    """What every value of the map is a multiple of, (N, C, H, W): the input, or its difference to the baseline."""
    facts = method.entry.facts
    if not facts.multiplier:
        return None
    if facts.multiplier == "input":
        return batch.images
    baseline = dict(method.spec.params).get("baseline", method.entry.parameters["baseline"])
    return batch.images - filled(model, batch.images, str(baseline), references=batch.references, seeds=batch.seeds)


def divided(maps: Tensor, factor: Tensor | None) -> Tensor:
    """Without the multiplier; 0 where that is 0."""
    return maps if factor is None else (maps / factor.where(factor != 0, 1)).where(factor != 0, 0)


def check(measures: Sequence[Measure]) -> None:
    """Raise for parameters that mean nothing, before anything is made."""
    for measure in measures:
        nothing = torch.zeros(1, 1, 12, 12)
        measure.entry.function(nothing, nothing, **measure.parameters)


def _names(text: str) -> list[str]:
    return [] if text == "all" else [name.strip() for name in text.split(",")]


def _fetched(several: Sequence[Found], count: int) -> list[Rows]:
    """All at once from the device."""
    known = [one.scored for one in several if isinstance(one.scored, Scored)]
    values = iter(torch.stack([one.values for one in known]).tolist())
    invalid = iter(torch.stack([torch.stack(list(one.invalid.values())) for one in known]).tolist())
    found = []
    for one in several:
        name = one.test.measure.entry.name
        if isinstance(one.scored, str):
            numbers, notes = [float("nan")] * count, [one.scored] * count
        else:
            numbers, notes = next(values), notes_of(one.scored.invalid, next(invalid), count)
        found.append(Rows(one.test.measure.definition, [name] * count, [one.condition] * count, numbers, notes))
    return found
