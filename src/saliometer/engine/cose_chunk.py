"""A chunk of images for COSE: pixels in 8 bits, changed copies, what every model predicts of them, and maps of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from saliometer.cose.pairs import Pair, data_pairs
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, Method, attributions
from saliometer.seeds import fork, forks
from saliometer.types import Batch, Samples

CLOSE = 0.02  # levels that an image may be off 8 bits and still be taken for one of them


@dataclass(frozen=True, eq=False)
class Changes:
    """Several changes of every image, or one of the model, with the maps that belong to them."""

    conditions: list[list[str]]  # of each change, for each image
    changed: Tensor  # (changes, N) bool: another prediction
    maps: Mapping[bool, Tensor]  # whether the target is fixed -> (changes, N, C, H, W)
    pairs: Sequence[Pair] = field(default_factory=list)  # none where the model is another

    def undone(self, maps: Tensor) -> Tensor:
        """Maps (changes, N, H, W) laid back over the images."""
        if not self.pairs:
            return maps
        return torch.stack([pair.undone(some) for pair, some in zip(self.pairs, maps, strict=True)])


class Chunk:
    """Images that are judged together: their pixels in 8 bits, their pairs, and what every model predicts."""

    def __init__(self, samples: Samples, answers: Answers, others: Mapping[str, Answers]) -> None:
        self.samples, self._answers, self._others = samples, answers, others
        mean, std = answers.model.mean, answers.model.std
        self._mean, self._std = (answers.model.channels(samples.batch.images, values) for values in (mean, std))
        levels = (samples.batch.images * self._std + self._mean) * 255
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
        return (pixels.to(torch.float32) / 255 - self._mean) / self._std

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

    def changes(self, method: Method, names: tuple[str, ...], count: int, kinds: Sequence[bool]) -> Iterator[Changes]:
        """Every data pair, as many together as fill a batch, then every other model."""
        pairs, together = self.pairs(names, count), max(1, self._answers.size // len(self.samples))
        for start in range(0, len(pairs), together):
            some = pairs[start : start + together]
            images = torch.cat([self.input(pair.images(self.pixels)) for pair in some])
            predicted = self.predictions(some, images)
            seeds = torch.cat([_seeds(self.batch, f"{pair.name} {pair.draw}") for pair in some])
            batch = replace(self.batch, images=images, seeds=seeds)
            maps = self._maps(method, self._answers, batch, predicted, kinds)
            yield Changes([pair.labels(images.shape) for pair in some], predicted != self.predicted, maps, some)
        for label, answers in self._others.items():
            predicted = self.predicted_by(label)[None]
            batch = replace(self.batch, seeds=_seeds(self.batch, label))
            maps = self._maps(method, answers, batch, predicted, kinds)
            self._answers.passes, answers.passes = self._answers.passes + answers.passes, 0
            yield Changes([[label] * len(self.samples)], predicted != self.predicted, maps)

    def _maps(
        self, method: Method, answers: Answers, batch: Batch, predicted: Tensor, kinds: Sequence[bool]
    ) -> dict[bool, Tensor]:
        """For every kind of target the maps (changes, N, C, H, W) of copies that are predicted as (changes, N).

        Where the first prediction is explained too, only copies that are predicted as another class go through again,
        in the same batches.
        """
        now, first = predicted.flatten(), self.predicted.repeat(len(predicted))
        if len(kinds) == 1:
            found = explained(method, answers, replace(batch, targets=first if kinds[0] else now))
            return {kinds[0]: found.unflatten(0, predicted.shape)}
        other = (now != first).nonzero()[:, 0]
        images, seeds = (torch.cat((some, some[other])) for some in (batch.images, batch.seeds))
        targets = torch.cat((now, first[other]))
        found = explained(method, answers, replace(batch, images=images, seeds=seeds, targets=targets))
        own, fixed = found[: len(now)], found[: len(now)].clone()
        fixed[other] = found[len(now) :]
        return {False: own.unflatten(0, predicted.shape), True: fixed.unflatten(0, predicted.shape)}


def explained(method: Method, answers: Answers, batch: Batch) -> Tensor:
    """(N, C, H, W)."""
    found = attributions([method], answers, batch)[method.label]
    if isinstance(found, Failure):
        raise found.error
    return found.maps


def _seeds(batch: Batch, purpose: str) -> Tensor:
    """A method that draws draws anew for each pair."""
    return forks(fork("cose", purpose), batch.seeds)
