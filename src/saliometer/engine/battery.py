"""Metrics that ask the model or the method itself, on the maps of one method: what they share is asked once."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saliometer import registry, types
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, Method, Scores, attributions, drive
from saliometer.maps import NORMALISATIONS, complaints, stage_name, staged
from saliometer.registry import Entry, Spec, one_of
from saliometer.seeds import fork, forks
from saliometer.types import Batch, Maps, Question, Samples, Scored, Subject

CONSTANT = ("invalid", "ones", "zeros")


@dataclass(frozen=True, eq=False)
class Measure:
    """A metric as it was asked for, with the way it reads maps."""

    entry: Entry
    spec: Spec
    normalisation: str = "abs_max_minmax"
    constant: str = "invalid"  # what a constant map counts as, where it has to be scaled

    @classmethod
    def parse(cls, text: str, normalisation: str = "abs_max_minmax", constant: str = "invalid") -> "Measure":
        spec = Spec.parse(text)
        entry = registry.metrics[spec.name]
        spec.check("metric", entry)
        one_of("normalisation", normalisation, NORMALISATIONS)
        return cls(entry, spec, normalisation, one_of("constant", constant, CONSTANT))

    @property
    def stage(self) -> str:
        if self.entry.facts.stage:
            return self.entry.facts.stage(self.entry.parameters | self.parameters)
        name = stage_name(self.entry.facts.reads, self.normalisation)
        return name if self.constant == "invalid" or not self.scales else f"{name}_constant_{self.constant}"

    @property
    def scales(self) -> bool:
        return self.entry.facts.reads == "scaled"

    @property
    def definition(self) -> str:
        """What stands in rows: the stage of the maps and every parameter, as a Spec."""
        return str(Spec(self.stage, tuple(sorted((self.entry.parameters | dict(self.spec.params)).items()))))

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.spec.params)


@dataclass
class Cost:
    """What a metric took on one chunk."""

    seconds: float = 0.0
    passes: int = 0
    shared: int = 0  # passes that another metric had asked for before


@dataclass
class Shelf:
    """Answers by the words of their questions, for one chunk of images; those about maps are dropped with the maps."""

    answers: Answers
    about_images: dict[str, tuple[Tensor, int]] = field(default_factory=dict)
    about_maps: dict[str, tuple[Tensor, int]] = field(default_factory=dict)
    shared: int = 0

    def ask(self, question: Question, stage: str, find: Callable[[], Tensor]) -> Tensor:
        """The answer, found at most once; keys that begin with 'image' hold for every method."""
        key = getattr(question, "key", "")
        if not key:
            return find()
        kind = f"{type(question).__name__} {getattr(question, 'of', '')} {getattr(question, 'count', '')} {key}"
        about_images = key.startswith("image")
        known, kind = (self.about_images, kind) if about_images else (self.about_maps, f"{kind} {stage}")
        if kind not in known:
            before = self.answers.passes
            known[kind] = find(), self.answers.passes - before
        else:
            self.shared += known[kind][1]
        return known[kind][0]


def measured(
    measures: Sequence[Measure], method: Method, maps: Tensor, samples: Samples, shelf: Shelf,
    said: Sequence[str] = (),
) -> Iterator[tuple[Measure, list[Scores] | Failure, Cost]]:  # fmt: skip
    """Every measure of one method's maps (N, C, H, W), with its cost; a measure that fails does not stop the others."""
    odd = complaints(maps)
    said = said or [""] * len(odd)
    broken = torch.tensor([word == "nan map" for word in odd], device=maps.device)
    whole = maps.nan_to_num(0.0, 0.0, 0.0) if bool(broken.any()) else maps
    shelf.about_maps.clear()
    for measure in measures:
        before, start, shelf.shared = shelf.answers.passes, time.perf_counter(), 0
        scored = _one(measure, method, whole, samples, shelf)
        found = scored if isinstance(scored, Failure) else _rows(measure, scored, broken, odd, said)
        cost = Cost(time.perf_counter() - start, shelf.answers.passes - before, shelf.shared)
        yield measure, found, cost


def _one(measure: Measure, method: Method, maps: Tensor, samples: Samples, shelf: Shelf) -> Scored | Failure:
    facts = measure.entry.facts
    invalid: dict[str, Tensor] = {}
    if not measure.scales:
        read = staged(maps, facts.reads, measure.normalisation)
    elif method.entry.facts.mask:
        read = maps.amax(1)
    else:
        read, flat = _scaled(measure, maps)
        if measure.constant == "invalid" and not facts.flat:
            invalid["constant maps cannot be scaled"] = flat
    subject = Subject(shelf.answers.model, method.spec, method.entry.facts.unit)
    name = measure.entry.name
    start = {name: partial(measure.entry.function, read, samples, subject, **measure.parameters)}
    targets = samples.batch.targets
    unknown = torch.zeros_like(targets, dtype=torch.bool)  # of what the model thinks of a copy of an image

    def answer(questions: Mapping[str, Question], _: Tensor) -> dict[str, Tensor | Exception]:
        asker, question = next(iter(questions.items()))
        shelf.answers.doing = f"{method.label}, {name}"
        try:
            reply = shelf.ask(question, measure.stage, partial(_find, question, method, samples, shelf))
        except MemoryError:
            raise
        except Exception as error:
            return {asker: error}
        of_these = isinstance(question, types.Scores | types.Logits) and reply.shape[1] == len(targets)
        if of_these:  # and not of other images that methods compare with
            unknown.logical_or_(reply.isnan().view(*reply.shape[:2], -1).any(2).any(0))
        return {asker: reply}

    found = drive(start, answer, targets)[name]
    if isinstance(found, Failure):
        return found
    scored = found if isinstance(found, Scored) else Scored(found)
    return replace(scored, invalid={**invalid, "the model gives NaN": unknown, **scored.invalid})


def _scaled(measure: Measure, maps: Tensor) -> tuple[Tensor, Tensor]:
    """Maps (N, H, W) in [0, 1], and (N,) which are constant: those are ones or zeros."""
    read = staged(maps, "scaled", measure.normalisation)
    flat = ~read.flatten(1).amax(1).isfinite()
    if measure.constant == "invalid":
        filling = (staged(maps, "order", measure.normalisation) != 0).to(read.dtype)
    else:
        filling = torch.full_like(read, float(measure.constant == "ones"))
    return torch.where(flat[:, None, None], filling, read), flat


def _find(question: Question, method: Method, samples: Samples, shelf: Shelf) -> Tensor:
    if isinstance(question, Maps):
        return torch.cat(list(_explained_again(question, method, samples.batch, shelf.answers)))
    reply = shelf.answers({shelf.answers.doing: question}, samples.batch.targets)
    (found,) = reply.values()
    if isinstance(found, Exception):
        raise found
    return found


def _explained_again(question: Maps, method: Method, batch: Batch, answers: Answers) -> Iterator[Tensor]:
    """Copies x images in batches about equally full; a method that draws draws anew for each copy."""
    fitting = max(1, answers.size // len(batch))
    together = -(-question.count // -(-question.count // fitting))
    for start in range(0, question.count, together):
        ks = range(start, min(start + together, question.count))
        copies = question.variants(ks)
        seeds = torch.cat([forks(fork("explained again", k), batch.seeds) for k in ks])
        altered = Batch(copies.flatten(0, 1), batch.targets.repeat(len(ks)), seeds, batch.references)
        shared, answers.shared = answers.shared, None  # these are other images
        try:
            found = attributions([method], answers, altered)[method.label]
        finally:
            answers.shared = shared
        if isinstance(found, Failure):
            raise found.error
        yield question.take(found.maps.unflatten(0, (len(ks), -1)))


def _rows(
    measure: Measure, scored: Scored, broken: Tensor, odd: Sequence[str], said: Sequence[str]
) -> list[Scores] | Failure:
    facts, name = measure.entry.facts, measure.entry.name
    if set(scored.parts) != set(facts.parts):
        wanted, came = sorted(facts.parts), sorted(scored.parts)
        return Failure.of(ValueError(f"metric '{name}' gave the parts {came}, but its facts list {wanted}"))
    bad = broken.clone()
    reasons = [[o, s] for o, s in zip(odd, said, strict=True)]
    for reason, where in scored.invalid.items():
        bad |= where
        for place in (where & ~broken).nonzero().flatten().tolist():  # a map with NaN says nothing more
            reasons[place].append(reason)
    notes = ["; ".join(dict.fromkeys(filter(None, words))) for words in reasons]
    every = {name: scored.values} | {f"{name}.{part}": values for part, values in scored.parts.items()}
    found = []
    for label, values in every.items():
        values = values.double().where(~bad, float("nan"))
        unexplained = (values.isnan() & ~bad).tolist()
        words = [f"{n}; undefined".removeprefix("; ") if u else n for n, u in zip(notes, unexplained, strict=True)]
        found.append(Scores(label, measure.definition, "", values, words))
    return found
