"""Answers the questions of methods and metrics: packs images x variants into full batches, never runs a pass twice."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from saliometer.engine.device import BATCH, exact, memory_format
from saliometer.registry import unknown
from saliometer.types import Features, Gradients, Logits, Model, Question

Answer = Tensor | Exception
Heard = tuple[Tensor, dict[str, Tensor]]  # gradients at the images; activations and gradients by layer
Seen = tuple[Tensor, Heard]


class Answers:
    """One model on its device. `size` is how many images go through at once; it halves when memory runs out."""

    def __init__(
        self,
        model: Model,
        device: torch.device,
        size: int = 0,
        *,
        align: int = 1,
        watch: Callable[[int], None] = lambda images: None,
    ) -> None:
        self.model, self.device = model, device
        self.align = align  # every pass is filled up to a multiple of this, which keeps rounding the same
        size = size or BATCH[device.type]
        self.size = size + -size % align
        self.watch = watch  # told how many images have just gone through
        self.passes = 0  # images that went through the network so far
        self.asked = 0  # images that all questions so far amount to, each counted once
        self.doing = ""  # what the pass under way is for

    def __call__(self, questions: Mapping[str, Question], targets: Tensor) -> dict[str, Answer]:
        """One answer for each asker's question; an exception where it failed, so that the others get theirs."""
        answers: dict[str, Answer] = {}
        seen: list[Seen] = []  # passes over unaltered variants, kept for the next asker
        layers = sorted({question.layer for question in questions.values() if isinstance(question, Features)})
        self.asked += len(targets) * _distinct(questions.values())
        with exact():
            for self.doing, question in questions.items():
                try:
                    answers[self.doing] = self._answer(question, targets, seen, layers)
                except MemoryError:
                    raise
                except Exception as error:
                    answers[self.doing] = error
        return answers

    def predicted(self, images: Tensor) -> Tensor:
        """(N,) int64: the class with the highest logit."""
        self.asked, self.doing = self.asked + len(images), "prediction"
        with exact():
            return self._logits(Logits(lambda _: images))[0].argmax(1)

    def classes(self, images: Tensor) -> int:
        """How many logits the model gives."""
        with exact():
            return self._logits(Logits(lambda _: images)).shape[2]

    def _answer(self, question: Question, targets: Tensor, seen: list[Seen], layers: list[str]) -> Tensor:
        if isinstance(question, Logits):
            return self._logits(question)
        if isinstance(question, Features):
            features = self._once(question.images, targets, seen, layers)[1]
            return features[self._passed(question.layer, features)].clone()  # others may get the same
        if question.count == 1:
            return question.take(0, self._once(question.variant(0), targets, seen, layers)[0].clone())
        return self._gradients(question, targets)

    def _once(self, images: Tensor, targets: Tensor, seen: list[Seen], layers: list[str]) -> Heard:
        """The gradients at one variant and at every layer anybody asks for, shared by all who ask about it."""
        for known, heard in seen:
            if known is images or torch.equal(known, images):
                return heard
        heard = self._backward(images, targets, layers)
        seen.append((images, heard))
        return heard

    def _passed(self, layer: str, features: Mapping[str, Tensor]) -> str:
        names = [name for name, _ in self.model.net.named_modules() if name]
        if layer not in names:
            raise LookupError(f"model '{self.model.name}': " + unknown("layer", layer, names))
        if layer not in features:
            raise LookupError(f"model '{self.model.name}': layer '{layer}' has no part in the score; name another")
        return layer

    def _gradients(self, question: Gradients, targets: Tensor) -> Tensor:
        total: Tensor | None = None
        for ks, images in self._packs(question, len(targets)):
            slopes, _ = self._backward(images, targets.repeat(len(ks)), [])
            for k, part in zip(ks, slopes.split(len(targets)), strict=True):  # in order, whatever the packing
                taken = question.take(k, part)
                total = taken if total is None else total.add_(taken)
        if total is None:
            raise ValueError("a question with a count of 0 has no answer")
        return total

    def _logits(self, question: Logits) -> Tensor:
        def run(images: Tensor, _: Tensor) -> tuple[Tensor]:
            with torch.no_grad():
                return (self._checked(self.model.logits(images), len(images)),)

        logits: list[Tensor] = []
        first = question.variant(0)
        for ks, images in self._packs(question, len(first), first):
            (outputs,) = self._in_parts(run, images, torch.zeros(len(images), device=self.device))
            logits.extend(outputs.split(len(images) // len(ks)))
        return torch.stack(logits)

    def _packs(
        self, question: Logits | Gradients, count: int, first: Tensor | None = None
    ) -> Iterator[tuple[range, Tensor]]:
        """As many variants at a time as fit into one batch."""
        together = max(1, self.size // count)
        for start in range(0, question.count, together):
            ks = range(start, min(start + together, question.count))
            variants = [first if k == 0 and first is not None else question.variant(k) for k in ks]
            yield ks, torch.cat(variants) if len(ks) > 1 else variants[0]

    def _backward(self, images: Tensor, targets: Tensor, layers: list[str]) -> Heard:
        """Gradients of the targets' logits at the images; for each layer (2, N, ...), activations and gradients."""

        names: list[str] = []  # of the layers that have a part in the score

        def run(images: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
            with torch.inference_mode(False), torch.enable_grad(), _listening(self.model, layers) as heard:
                images = images.clone().requires_grad_()  # a clone, because the caller may be in inference mode
                logits = self._checked(self.model.logits(images), len(images))
                score = logits.gather(1, targets.clone()[:, None]).sum()
                slope, *slopes = torch.autograd.grad(score, [images, *heard.values()], allow_unused=True)
            if slope is None:
                raise ValueError(f"model '{self.model.name}': no gradient reaches the images from the score")
            pairs = {
                name: torch.stack((output.detach(), slopes[place]))
                for place, (name, output) in enumerate(heard.items())
                if slopes[place] is not None
            }
            names[:] = pairs
            return (slope.contiguous(), *pairs.values())

        slopes, *features = self._in_parts(run, images, targets)
        return slopes, dict(zip(names, features, strict=True))

    def _in_parts(
        self, run: Callable[[Tensor, Tensor], tuple[Tensor, ...]], images: Tensor, targets: Tensor
    ) -> tuple[Tensor, ...]:
        parts: list[tuple[Tensor, ...]] = []
        start = 0
        while start < len(images):
            part = slice(start, start + self.size)
            try:
                count = len(images[part])
                packed = self._filled_up(images[part]).to(self.device, memory_format=memory_format(self.device))
                found = run(packed, self._filled_up(targets[part]))
            except RuntimeError as error:
                self._back_off(error)
                continue
            parts.append(tuple(one.narrow(min(place, 1), 0, count) for place, one in enumerate(found)))
            start += count
            self.passes += count
            self.watch(count)
        if len(parts) == 1:
            return parts[0]
        return tuple(torch.cat(some, 1 if place else 0) for place, some in enumerate(zip(*parts, strict=True)))

    def _filled_up(self, values: Tensor) -> Tensor:
        short = -len(values) % self.align
        return torch.cat((values, values[:1].expand(short, *values.shape[1:]))) if short else values

    def _back_off(self, error: RuntimeError) -> None:
        """Halve the batch if memory ran out; raise anything else."""
        if not any(words in str(error) for words in ("out of memory", "can't allocate memory")):
            raise error
        if self.size == 1:
            where = f"{self.device}'s memory"
            raise MemoryError(f"one image of model '{self.model.name}' does not fit into {where}") from error
        self.size //= 2
        self.align = min(self.align, self.size)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _checked(self, logits: Tensor, count: int) -> Tensor:
        if logits.ndim != 2 or len(logits) != count:
            came = tuple(logits.shape)
            raise ValueError(f"model '{self.model.name}' gave shape {came}, wanted ({count}, classes)")
        return logits


def _distinct(questions: Iterable[Question]) -> int:
    """How many variants are asked about, those of single questions taken for the same."""
    counts = [question.count if isinstance(question, Logits | Gradients) else 1 for question in questions]
    return sum(count for count in counts if count > 1) + (1 in counts)


@contextmanager
def _listening(model: Model, layers: list[str]) -> Iterator[dict[str, Tensor]]:
    """The outputs of named layers; what follows sees a copy, so that an in-place ReLU cannot change them."""
    modules = dict(model.net.named_modules())
    heard: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[object, object, Tensor], Tensor]:
        def hook(_module: object, _inputs: object, output: Tensor) -> Tensor:
            heard[name] = output
            return output.clone()

        return hook

    handles = []
    try:
        for layer in layers:
            if layer in modules:
                handles.append(modules[layer].register_forward_hook(keep(layer)))
        yield heard
    finally:
        for handle in handles:
            handle.remove()
