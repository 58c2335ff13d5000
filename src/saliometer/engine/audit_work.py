"""What an audit has at hand while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saliometer.engine.answer import Answers
from saliometer.engine.asked import REFERENCES, Request
from saliometer.engine.battery import Measure
from saliometer.engine.compared import Comparison
from saliometer.engine.judged import Judged
from saliometer.engine.run import Run, Unit
from saliometer.engine.shared import Memory
from saliometer.engine.source import Source
from saliometer.types import Model, Samples


@dataclass(eq=False)
class Work:
    """The request, and what answers it."""

    request: Request
    outcome: Judged
    source: Source
    answers: Answers
    measures: Sequence[Measure]
    compared: Sequence[Comparison]
    references: Tensor | None  # images that methods may compare with; found when they are first wanted
    memory: Memory | None  # of audits of other targets

    @property
    def run(self) -> Run:
        return self.outcome.run

    @property
    def model(self) -> Model:
        return self.answers.model

    def samples(self, start: int, stop: int) -> Samples:
        """With the class that is explained: the label unless another is asked for."""
        samples = self.source.samples(start, stop, self.request.seed, self.answers.device)
        if self.request.target == "label":
            return samples
        most, least = self.answers.extremes(samples.batch.images)
        return samples.explaining(most if self.request.target == "predicted" else least)

    def with_references(self, samples: Samples) -> Samples:
        if self.references is None:
            self.references = self.source.references(REFERENCES, self.request.seed, self.answers.device)
        others = self.references.to(self.answers.device)
        return replace(samples, batch=replace(samples.batch, references=others))

    def shared_at(self, unit: Unit, samples: Samples) -> None:
        """Passes of other targets on the same images serve these."""
        self.answers.shared = None
        if self.memory is not None:
            chunk = f"{self.model.fingerprint} {self.request.seed} {self.source.fingerprint} {unit.start}"
            self.answers.shared = self.memory.at(chunk, self._classes(unit, samples))

    def _classes(self, unit: Unit, samples: Samples) -> Tensor:
        """(targets, N): label, predicted and least probable class, and a blend's other class, that may be asked for.

        The label is the predicted class where there is none.
        """
        most, least = self.answers.extremes(samples.batch.images)
        blended = self.source.blended
        others = () if blended is None else (blended[unit.start : unit.stop].to(most.device),)
        return torch.stack((samples.labels.where(samples.labels >= 0, most), most, least, *others))
