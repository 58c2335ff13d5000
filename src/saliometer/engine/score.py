"""Drives methods and metrics on one chunk of samples: starts them, carries questions and answers, checks, scores."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import GeneratorType
from typing import Any

import torch
from torch import Tensor

from saliometer import registry
from saliometer.engine.answer import Answer, Answers
from saliometer.engine.device import exact
from saliometer.maps import checked, collapsed, complaints, dead
from saliometer.registry import Entry, Spec
from saliometer.seeds import fork, forks
from saliometer.types import PRIMARY, SECONDARY, Asking, Batch, Explained, Model, Question, Samples

ROLE_NAMES = {PRIMARY: "primary", SECONDARY: "secondary"}


@dataclass(frozen=True)
class Failure:
    """A cell that failed: what to say of it, and where it happened."""

    message: str
    traceback: str
    error: BaseException

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        return cls(f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)), error)


@dataclass(frozen=True, eq=False)
class Method:
    """A method as it was asked for."""

    label: str  # what rows call it
    entry: Entry
    spec: Spec
    key: str = ""  # of all that decides its maps: its parameters and, for a user's own, its code
    row: str = ""  # what rows call it, where that is not its label
    condition: str = ""  # another budget or seed than its own
    reseed: int = 0  # which of its other seeds
    unasked: bool = False  # nobody named it: if it does not fit a model, it is left out

    @property
    def own(self) -> bool:
        return self.entry.own

    @property
    def control(self) -> bool:
        return self.entry.facts.control

    @property
    def rendering(self) -> str:
        return self.entry.facts.rendering

    def start(self, model: Model, batch: Batch, truth: Tensor | None = None) -> Tensor | Asking:
        params = dict(self.spec.params)
        if self.reseed:
            batch = replace(batch, seeds=forks(fork("reseed", self.reseed), batch.seeds))
        if self.entry.facts.needs_truth:
            if truth is None:
                raise ValueError(f"method '{self.label}' shows the truth itself: it needs a task that knows it")
            return self.entry.function(model, batch, truth=truth, **params)  # type: ignore[no-any-return]
        return self.entry.function(model, batch, **params)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class Scores:
    """One metric of one method on a chunk."""

    metric: str
    definition: str
    region: str
    values: Tensor  # (N,) float64
    notes: list[str]


Answering = Callable[[Mapping[str, Question], Tensor], dict[str, Answer]]


@exact()
def drive(starts: Mapping[str, Callable[[], Any]], answers: Answering, targets: Tensor) -> dict[str, Any]:
    """Run everything to its result or Failure; what yields a question waits while those of all others are gathered."""
    results: dict[str, Any] = {}
    asking: dict[str, tuple[Asking, Question]] = {}  # generators with their open questions

    def step(name: str, generator: Asking, advance: Callable[[], Question]) -> None:
        try:
            asking[name] = generator, advance()
        except StopIteration as stop:
            results[name] = stop.value
        except MemoryError:
            raise
        except Exception as error:
            results[name] = Failure.of(error)

    for name, start in starts.items():
        try:
            begun = start()
        except (Exception, SystemExit) as error:
            results[name] = Failure.of(error)
            continue
        if isinstance(begun, GeneratorType):
            step(name, begun, partial(next, begun))
        else:
            results[name] = begun
    while asking:
        waiting, asking = asking, {}
        replies = answers({name: question for name, (_, question) in waiting.items()}, targets)
        for name, reply in replies.items():
            generator, _ = waiting[name]
            go_on = generator.throw if isinstance(reply, Exception) else generator.send
            step(name, generator, partial(go_on, reply))  # type: ignore[arg-type]
    return {name: results[name] for name in starts}


def attributions(
    methods: Sequence[Method], answers: Answers, batch: Batch, truth: Tensor | None = None
) -> dict[str, Explained | Failure]:
    """Maps (N, C, H, W) and what goes with them for each method, or why it failed."""
    starts = {m.label: partial(m.start, answers.model, batch, truth) for m in methods}
    results = drive(starts, answers, batch.targets)
    for name, found in results.items():
        if not isinstance(found, Failure):
            try:
                explained = found if isinstance(found, Explained) else Explained(found)
                results[name] = replace(explained, maps=checked(explained.maps, name, batch.images))
            except ValueError as error:
                results[name] = Failure.of(error)
    return results


def repeatable(method: Method, answers: Answers, batch: Batch, maps: Tensor) -> bool:
    """Whether the method gives the same maps when called again on the same batch."""
    again = attributions([method], answers, batch)[method.label]
    return not isinstance(again, Failure) and torch.equal(again.maps.nan_to_num(), maps.nan_to_num())


def scores(
    maps: Tensor,
    rendering: str,
    samples: Samples,
    answers: Answers,
    *,
    metrics: Sequence[str],
    definitions: Sequence[str],
    region: str,
    said: Sequence[str] = (),
) -> Iterator[Scores]:
    """Every metric in every definition; undefined values are NaN, and the notes say why."""
    odd, roles = complaints(maps), samples.roles.tolist()
    said = said or [""] * len(odd)
    for definition in definitions:
        flat = collapsed(maps, definition, rendering)
        empty = dead(flat, definition)
        flat = flat.where(~empty[:, None, None], 0)
        empties = ["scored as empty" if e and not o else "" for e, o in zip(empty.tolist(), odd, strict=True)]
        starts = {
            name: partial(registry.metrics[name].function, flat, samples, definition=definition, region=region)
            for name in metrics
        }
        for name, values in drive(starts, answers, samples.batch.targets).items():
            if isinstance(values, Failure):
                raise RuntimeError(f"metric '{name}' failed: {values.message}\n{values.traceback}")
            facts = registry.metrics[name].facts
            values = values.double().where(~empty, facts.dead)
            missing = [_missing(facts.needs, shown) for shown in roles]
            values = values.where(torch.tensor([not m for m in missing], device=values.device), float("nan"))
            notes = ["; ".join(filter(None, parts)) for parts in zip(said, odd, empties, missing, strict=True)]
            yield Scores(name, definition, region, values, notes)


def promise(explained: Explained, said: Sequence[str]) -> Iterator[Scores]:
    """How far the maps are from what their method promises, relative to that; nothing where it promises nothing."""
    if explained.residual is not None and explained.promised is not None:
        relative = explained.residual.double().abs() / explained.promised.double().abs().clamp(min=1e-6)
        yield Scores("residual", "relative", "", relative, list(said))


def remarks(explained: Explained, note: str = "") -> list[str]:
    """What the method itself says of each map, in the words of its flags."""
    words = {word: given.tolist() for word, given in explained.flags.items()}
    return [
        "; ".join(filter(None, [note, *(word for word in words if words[word][place])]))
        for place in range(len(explained.maps))
    ]


def _missing(needed: tuple[int, ...], roles: list[int]) -> str:
    absent = [ROLE_NAMES[role] for role in needed if role not in roles]
    return f"no {' and no '.join(absent)} object" if absent else ""
