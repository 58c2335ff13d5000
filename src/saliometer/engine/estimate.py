"""How long an audit will take: questions are counted without being answered, a pass is timed on this machine."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from saliometer.engine.answer import Answers
from saliometer.engine.audit_maps import Made
from saliometer.engine.battery import Measure
from saliometer.engine.score import Failure, Method, drive
from saliometer.maps import staged
from saliometer.seeds import uniform
from saliometer.types import (
    Activations,
    Batch,
    Gradients,
    Logits,
    Maps,
    Model,
    Question,
    Samples,
    Scores,
    Subject,
    Walk,
    unaltered,
)


@dataclass(frozen=True)
class Estimate:
    """Of what is left to do."""

    seconds: float
    passes: int
    images: int  # those that lack a method
    each: Mapping[str, float]  # method -> seconds for one image
    passes_each: Mapping[str, float]


def estimate(
    methods: Mapping[Method | Made, int], measures: Sequence[Measure], answers: Answers, samples: Samples, images: int,
    again: int = 0, predicted: int = 0, beside: int = 0,
) -> Estimate:  # fmt: skip
    """For so many images that lack some method, each method for as many as lack it, scored by every measure.

    `again` is how many more times each method explains an image; `predicted` how many changed copies or models are
    asked for a prediction, once for all methods; `beside` how many other images go through, once for all.
    """
    forward, both = _pace(answers, samples)
    counted = Counting(answers.classes(samples.batch.images[:1]), len(samples), again=again)
    for measure in measures:
        counted.count(measure, answers.model, samples)
    seconds, passes = {}, {}
    for method in methods:
        own = 0 if isinstance(method, Made) else asked(method, answers, samples.batch) * (1 + counted.again)
        slow = isinstance(method, Method) and not method.entry.facts.hides
        seconds[method.label] = own * (both if slow else forward) + counted.about_maps * forward
        passes[method.label] = own + counted.about_maps
    once = counted.about_images + predicted
    others = images * once + beside
    total = sum(count * seconds[method.label] for method, count in methods.items()) + others * forward
    count = sum(count * passes[method.label] for method, count in methods.items()) + others
    return Estimate(total, round(count), images, seconds, passes)


def try_parameters(measures: Sequence[Measure], model: Model, samples: Samples, classes: int) -> None:
    """Raise what a metric says of bad parameters, before anything is made or kept."""
    counted = Counting(classes, len(samples))
    for measure in measures:
        found = counted.count(measure, model, samples)
        if isinstance(found, Failure) and isinstance(found.error, ValueError | LookupError):
            raise ValueError(f"metric '{measure.spec}': {found.error}") from found.error


def cost(method: Method) -> float:
    """A method's passes for one image, with its parameters."""
    facts, params = method.entry.facts, dict(method.spec.params)
    default, given = method.entry.parameters.get(facts.budget), params.get(facts.budget)
    if isinstance(default, int) and isinstance(given, int) and default > 0:
        return facts.passes * given / default
    return 0 if facts.control else facts.passes


def asked(method: Method, answers: Answers, batch: Batch) -> float:
    """The same; of one that hides parts, and asks for nothing but scores, by its questions about the first image."""
    counts: list[int] = []

    def answer(questions: Mapping[str, Question], targets: Tensor) -> dict[str, Tensor | Exception]:
        (question,) = questions.values()
        if isinstance(question, Activations):
            return answers(questions, targets)
        if isinstance(question, Scores):
            counts.append(question.count)
            return {method.label: torch.zeros(question.count, 1, device=targets.device)}
        counts.clear()
        return {method.label: InterruptedError("its passes depend on answers")}

    if method.entry.facts.hides:
        first = Batch(batch.images[:1], batch.targets[:1], batch.seeds[:1], batch.references)
        drive({method.label: partial(method.start, answers.model, first)}, answer, first.targets)
    return sum(counts) or cost(method)


@dataclass
class Counting:
    """Takes questions, gives zeros for answers, and counts the passes that the distinct ones would take."""

    classes: int
    images: int
    about_images: int = 0  # once for all methods
    about_maps: int = 0  # once for each method
    again: int = 0  # explanations of altered copies, for each method
    _known: set[str] = field(default_factory=set)

    def count(self, measure: Measure, model: Model, samples: Samples) -> Any:
        """What the metric says when every answer is zeros; a Failure where it refuses its parameters."""
        noise = uniform(samples.batch.seeds, "estimate", 1, *samples.batch.images.shape[2:])
        read = staged(noise, measure.entry.facts.reads, measure.normalisation)
        subject = Subject(model, measure.spec)
        start = partial(measure.entry.function, read, samples, subject, **measure.parameters)
        return drive({measure.stage: start}, self, samples.batch.targets)[measure.stage]

    def __call__(self, questions: Mapping[str, Question], _: Tensor) -> dict[str, Tensor | Exception]:
        return {stage: self._answer(stage, question) for stage, question in questions.items()}

    def _answer(self, stage: str, question: Question) -> Tensor:
        count = question.passes if isinstance(question, Walk) else getattr(question, "count", 1)
        key = getattr(question, "key", "")
        about_images = key.startswith("image")
        kind = f"{type(question).__name__} {getattr(question, 'of', '')}"
        words = f"{kind} {key} {count} {'' if about_images else stage}"
        if not key or words not in self._known:
            self._known.add(words)
            if isinstance(question, Maps):
                self.again += count
            elif about_images:
                self.about_images += count
            else:
                self.about_maps += count * (3 if isinstance(question, Gradients) else 1)
        shape = (count, self.images, self.classes) if isinstance(question, Logits) else (count, self.images)
        if isinstance(question, Scores | Logits | Maps):
            return torch.zeros(shape)
        return torch.zeros_like(question.images) if hasattr(question, "images") else torch.zeros(shape)


def _pace(answers: Answers, samples: Samples) -> tuple[float, float]:
    """Seconds of one image's pass, forward, and forward and backward, at about the size of the audit's batches.

    Where no gradient can be taken, the methods that want one will say so: here it counts as three passes.
    """
    images = samples.batch.images
    copies = max(1, min(answers.size, 64) // len(images))
    targets = samples.batch.targets
    timed: list[float] = []
    for question in (Scores(unaltered(images), copies), Gradients(unaltered(images), copies)):
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            found = answers({"timing": question}, targets)["timing"]
            if isinstance(found, Exception) and timed:
                return timed[0], 3 * timed[0]
            if isinstance(found, Exception):
                raise found
            found.sum().item()  # waits for a GPU
            seconds.append(time.perf_counter() - start)
        timed.append(min(seconds) / (copies * len(images)))
    return timed[0], timed[1]
