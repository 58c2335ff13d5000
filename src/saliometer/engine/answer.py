"""Answers the questions of methods and metrics: packs images x variants into full batches, never runs a pass twice."""

import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.engine.device import BATCH, exact, memory_format, out_of_memory, wants_plain
from saliometer.engine.shared import Shared
from saliometer.engine.tail import Tail
from saliometer.graph import Graph, Network, RefusedError, UnfitError, refusal
from saliometer.registry import methods, one_of, unknown
from saliometer.types import SCORES, Activations, Features, Gradients, Logits, Model, Question, Scores, Walk, unaltered

Answer = Tensor | Exception
Heard = dict[str, tuple[Tensor, Tensor]]  # by layer, and for the images themselves under '': values and gradients
Seen = tuple[Tensor, Heard]
Several = Logits | Scores | Gradients  # questions about several copies of the batch


class Answers:
    """One model on its device. `size` is how many images go through at once; it halves when memory runs out."""

    def __init__(
        self,
        model: Model,
        device: torch.device,
        size: int = 0,
        *,
        align: int = 1,
        classes: int = 0,
        forward: Callable[[Tensor], Tensor] | None = None,
        watch: Callable[[int], None] = lambda images: None,
    ) -> None:
        self.model, self.device = model, device
        self.align = align  # every pass is filled up to a multiple of this, which keeps rounding the same
        size = size or BATCH[device.type]
        self.size = size + -size % align
        self.layout = memory_format(device, model.net)
        self.columns = classes  # of the logits, where that is known
        self.forward = forward or model.logits  # passes without gradients, all of one kind so that they round alike
        self.watch = watch  # told how many images have just gone through
        self.passes = 0  # images that went through the network so far
        self.asked = 0  # images that all questions so far amount to, each counted once
        self.doing = ""  # what the pass under way is for
        self._known: tuple[Tensor, Tensor] | None = None  # images whose logits were the last to be found, and those
        self._behind: Tail | None = None  # the last that was asked about
        self.shared: Shared | None = None  # other classes of the images at hand, whose scores are found along the way

    def __call__(self, questions: Mapping[str, Question], targets: Tensor) -> dict[str, Answer]:
        """One answer for each asker's question; an exception where it failed, so that the others get theirs."""
        answers: dict[str, Answer] = {}
        seen: list[Seen] = []  # passes over unaltered variants, kept for the next asker
        wanted = {_place(question) for question in questions.values()}
        places = sorted(place for place in wanted if place is not None)  # where a single pass has to give gradients
        self.asked += len(targets) * _distinct(questions.values())
        self.asked += sum(len(question.images) for question in questions.values() if isinstance(question, Activations))
        with exact():
            for self.doing, question in questions.items():
                try:
                    answers[self.doing] = self._answer(question, targets, seen, places)
                except MemoryError:
                    raise
                except Exception as error:
                    answers[self.doing] = error
        return answers

    def predicted(self, images: Tensor) -> Tensor:
        """(N,) int64: the class with the highest logit."""
        self.asked, self.doing = self.asked + len(images), "prediction"
        with exact():
            logits = self._logits(Logits(unaltered(images)), len(images))[0]
        self._known = images, logits
        return logits.argmax(1)

    def extremes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(N,) int64 twice: the classes with the highest and the lowest logit."""
        most = self.predicted(images)
        assert self._known is not None
        return most, self._known[1].argmin(1)

    def classes(self, images: Tensor) -> int:
        """How many logits the model gives."""
        with exact():
            return self._logits(Logits(unaltered(images)), len(images)).shape[2]

    def _answer(self, question: Question, targets: Tensor, seen: list[Seen], places: list[str]) -> Tensor:
        if isinstance(question, Logits):
            return self._logits(question, len(targets))
        if isinstance(question, Scores):
            return self._scores(question, targets)
        if isinstance(question, Features):
            features = self._once(question.images, targets, seen, places)
            return _stacked(*features[self._passed(question.layer, features)])
        if isinstance(question, Activations):
            return self._activations(question)
        if isinstance(question, Walk):
            return self._walk(question)
        assert isinstance(question, Gradients), "maps are asked of the method"
        if _place(question) == "":
            heard = self._once(question.variants(range(1))[0], targets, seen, places)
            slope = self._reached(heard.get("", (None, None))[1])
            return question.take(0, slope.clone(memory_format=torch.contiguous_format))  # others may get the same
        return self._gradients(question, targets)

    def _once(self, images: Tensor, targets: Tensor, seen: list[Seen], places: list[str]) -> Heard:
        """The gradients at one variant wherever anybody asks for them, shared by all who ask about it."""
        for known, heard in seen:
            if known is images or torch.equal(known, images):
                return heard
        heard = self._backward(images, targets, places)
        seen.append((images, heard))
        return heard

    def _passed(self, layer: str, heard: Container[str]) -> str:
        if layer not in heard:
            self._check_layer(layer)
            raise LookupError(
                f"model '{self.model.name}': layer '{layer}' has no part in the score, or gives several tensors at "
                "once; name another"
            )
        return layer

    def _check_layer(self, layer: str) -> None:
        names = [name for name, _ in self.model.net.named_modules() if name]
        if layer not in names:
            raise LookupError(f"model '{self.model.name}': " + unknown("layer", layer, names))

    def _logits(self, question: Logits, count: int) -> Tensor:
        def run(images: Tensor, _: slice) -> tuple[Tensor]:
            with torch.no_grad():
                return (self._checked(self.forward(images), len(images)),)

        return torch.cat(
            [self._in_parts(run, rows)[0].unflatten(0, (len(ks), -1)) for ks, rows in self._packs(question, count)]
        )

    def _scores(self, question: Scores, targets: Tensor) -> Tensor:
        one_of("score", question.of, SCORES)
        if question.count == 1 and question.at is None and self._known:
            images, logits = self._known
            if _same(images, question.variants(range(1))[0]):
                self.asked -= len(targets)  # nothing has to go through again
                return self._score(logits, targets, question.of)[None]
        place = self.shared.place(targets) if self.shared and question.key.startswith("image") else None
        words = f"{question.key} {question.of} {question.count}"
        if self.shared and place is not None and (known := self.shared.get(words, place)) is not None:
            self.asked -= question.count * len(targets)
            return known
        classes = self.shared.classes if self.shared and place is not None else targets[None]
        tail, lightness = self._tail(question)
        found: list[list[Tensor]] = []  # for each pack and each of the classes that are asked for: (copies, N)
        for ks, packed in self._packs(question, len(targets), lightness):
            wanted = classes.repeat(1, len(ks))  # (classes, rows)

            def run(images: Tensor, rows: slice, wanted: Tensor = wanted) -> tuple[Tensor, ...]:
                with torch.no_grad():
                    logits = self._checked(tail(images, rows), len(images))
                    return tuple(self._score(logits, self._filled_up(some[rows]), question.of) for some in wanted)

            found.append([scores.view(len(ks), -1) for scores in self._in_parts(run, packed, lightness)])
        every = [scores[0] if len(scores) == 1 else torch.cat(scores) for scores in zip(*found, strict=True)]
        if self.shared and place is not None:
            self.shared.keep(words, torch.stack(every))
        return every[place or 0]

    def _gradients(self, question: Gradients, targets: Tensor) -> Tensor:
        one_of("score", question.of, SCORES)
        tail, lightness = self._tail(question)
        total: Tensor | None = None
        for ks, packed in self._packs(question, len(targets), lightness):
            wanted = targets.repeat(len(ks))

            def run(images: Tensor, rows: slice, wanted: Tensor = wanted) -> tuple[Tensor]:
                with torch.inference_mode(False), torch.enable_grad():
                    images = _ordinary(images).requires_grad_()
                    logits = self._checked(tail(images, rows), len(images))
                    score = self._surrogate(logits, self._filled_up(wanted[rows]).clone(), question.of)
                    return (self._reached(*_slopes(score, [images])).contiguous(),)

            (slopes,) = self._in_parts(run, packed, lightness)
            for k, part in zip(ks, slopes.unflatten(0, (len(ks), -1)), strict=True):  # in order, whatever the packing
                taken = question.take(k, part)
                total = taken.clone() if total is None else total.add_(taken)
        if total is None:
            raise ValueError("a question with a count of 0 has no answer")
        return total

    def _packs(self, question: Several, images: int, lightness: int = 1) -> Iterator[tuple[range, Tensor]]:
        """As many copies of so many images as fit into one batch, as rows, of which `lightness` take an image's room.

        Batches are about equal: a last one of few images would take longer for each.
        """
        if not question.count:
            return
        fitting = max(1, lightness * self.size // images)
        together = -(-question.count // -(-question.count // fitting))
        for start in range(0, question.count, together):
            ks = range(start, min(start + together, question.count))
            yield ks, question.variants(ks).flatten(0, 1)

    def _tail(self, question: Scores | Gradients) -> tuple[Callable[[Tensor, slice], Tensor], int]:
        """From rows of variants to logits: the whole network, or what is behind their layer; and how light a row is."""
        if question.at is None:
            return lambda images, _: (self.model.logits if torch.is_grad_enabled() else self.forward)(images), 1
        if self._behind is None or self._behind.at is not question.at:
            self._check_layer(question.at.layer)
            self._behind = Tail(self.model, question.at)
        return self._behind, self._behind.lightness

    def _activations(self, question: Activations) -> Tensor:
        def run(images: Tensor, _: slice) -> tuple[Tensor, Tensor]:
            with torch.no_grad(), _listening(self.model, [question.layer]) as heard:
                logits = self._checked(self.model.logits(images), len(images))
                return logits, heard[self._passed(question.layer, heard)]

        logits, outputs = self._in_parts(run, question.images)
        self._remember(question.images, logits)
        return outputs

    def _walk(self, question: Walk) -> Tensor:
        def run(images: Tensor, rows: slice) -> tuple[Tensor]:
            with torch.inference_mode(False), torch.no_grad():
                try:
                    network.layout = self.layout
                    return (network.walked(question.walk, rows).contiguous(),)
                except RefusedError as error:
                    works = ", ".join(working(network.graph(images)))
                    raise UnfitError(f"{error}. Works on model '{self.model.name}': {works}") from error

        network = Network(self.model.net, self.model.logits, self.size, self._tick)
        if not question.passes:
            return network.walked(question.walk, slice(0, len(question.images)))
        align, self.align = self.align, 1  # what walks has other tensors beside the images, one for each
        try:
            return self._in_parts(run, question.images)[0]
        finally:
            self.align = align

    def _score(self, logits: Tensor, targets: Tensor, of: str) -> Tensor:
        if of == "logit":
            return logits.gather(1, targets[:, None])[:, 0]
        odds = self._odds(logits, targets)
        if of == "log_odds":
            return odds
        return odds.sigmoid() if of == "probability" else F.logsigmoid(odds)

    def _surrogate(self, logits: Tensor, targets: Tensor, of: str) -> Tensor:
        """A number whose gradient is the scores'; for a probability, one that a saturated softmax does not lose."""
        if of == "probability":
            odds = self._odds(logits, targets)
            return (odds * (F.logsigmoid(odds) + F.logsigmoid(-odds)).exp().detach()).sum()
        return self._score(logits, targets, of).sum()

    def _odds(self, logits: Tensor, targets: Tensor) -> Tensor:
        """(N,): the logarithm of p / (1 - p) for each target's probability p."""
        own = logits.gather(1, targets[:, None])[:, 0]
        if self.model.link == "sigmoid" or logits.shape[1] == 1:
            return own
        return own - logits.scatter(1, targets[:, None], -torch.inf).logsumexp(1)

    def _reached(self, slope: Tensor | None) -> Tensor:
        if slope is None:
            raise ValueError(f"model '{self.model.name}': no gradient reaches the images from the score")
        return slope

    def _backward(self, images: Tensor, targets: Tensor, places: list[str]) -> Heard:
        """Gradients of the targets' logits; the pass back goes no further than to the first place."""

        names: list[str] = []  # of the places that have a part in the score

        def run(images: Tensor, rows: slice) -> tuple[Tensor, ...]:
            with torch.inference_mode(False), torch.enable_grad(), _listening(self.model, places) as heard:
                images = _ordinary(images)
                if "" in places:
                    heard[""] = images.requires_grad_()
                logits = self._checked(self.model.logits(images), len(images))
                score = logits.gather(1, self._filled_up(targets[rows]).clone()[:, None]).sum()
                slopes = _slopes(score, list(heard.values())) if heard else ()
            pairs = {
                name: (value.detach(), slope)
                for (name, value), slope in zip(heard.items(), slopes, strict=True)
                if slope is not None
            }
            names[:] = pairs
            return (logits.detach(), *itertools.chain.from_iterable(pairs.values()))

        logits, *found = self._in_parts(run, images)
        self._remember(images, logits)
        return dict(zip(names, zip(found[::2], found[1::2], strict=True), strict=True))

    def _remember(self, images: Tensor, logits: Tensor) -> None:
        """What the network itself gave, unless forward passes round in another way."""
        if self.forward == self.model.logits:
            self._known = images, logits

    def _in_parts(
        self, run: Callable[[Tensor, slice], tuple[Tensor, ...]], images: Tensor, lightness: int = 1
    ) -> tuple[Tensor, ...]:
        """`run` on as many rows as fit, which its results have in front."""
        parts: list[tuple[Tensor, ...]] = []
        start = 0
        while start < len(images):
            rows = slice(start, min(start + lightness * self.size, len(images)))
            try:
                count = len(images[rows])
                packed = self._filled_up(images[rows]).to(self.device)
                if packed.ndim == 4:
                    packed = packed.contiguous(memory_format=self.layout)
                found = run(packed, rows)
            except RuntimeError as error:
                if not self._laid_out_anew(error):
                    self._back_off(error)
                continue
            parts.append(tuple(one[:count] for one in found))
            start += count
            self._tick(count)
        if len(parts) == 1:
            return parts[0]
        return tuple(map(torch.cat, zip(*parts, strict=True)))

    def _tick(self, images: int) -> None:
        self.passes += images
        self.watch(images)

    def _filled_up(self, values: Tensor) -> Tensor:
        short = -len(values) % self.align
        return torch.cat((values, values[:1].expand(short, *values.shape[1:]))) if short else values

    def _laid_out_anew(self, error: RuntimeError) -> bool:
        """Whether the network cannot take its images with channels last, and gets them as they come from now on."""
        if self.layout == torch.contiguous_format or not wants_plain(error, self.model.net):
            return False
        self.layout = torch.contiguous_format
        return True

    def _back_off(self, error: RuntimeError) -> None:
        """Halve the batch if memory ran out; raise anything else."""
        if not out_of_memory(error):
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
        if self.columns and logits.shape[1] != self.columns:
            raise ValueError(f"model '{self.model.name}' gave {logits.shape[1]} classes, and {self.columns} before")
        return logits


def _ordinary(images: Tensor) -> Tensor:
    """A tensor that autograd can follow; a copy only where the caller is in inference mode."""
    return images.clone() if images.is_inference() else images.detach()


def _stacked(value: Tensor, slope: Tensor) -> Tensor:
    """(2, ...): a copy in the layout that they have; to make plain what has channels last takes longer."""
    if value.ndim != 4 or value.is_contiguous():
        return torch.stack((value, slope))
    return torch.stack((value.movedim(1, -1), slope.movedim(1, -1))).movedim(-1, 2)


def _slopes(score: Tensor, places: list[Tensor]) -> tuple[Tensor | None, ...]:
    """The score's gradient at each place; None where no way leads back to it, also where none leads anywhere."""
    if not score.requires_grad:
        return (None,) * len(places)
    return torch.autograd.grad(score, places, allow_unused=True)


def _same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same memory, read in the same way."""
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride()


def working(graph: Graph) -> list[str]:
    """The methods that have a rule for every operation of a network, or need none."""
    tables = {name: entry.facts.rules for name, entry in methods.items() if not entry.facts.control}
    return [name for name, rules in tables.items() if rules is None or refusal(graph, rules) is None]


def _place(question: Question) -> str | None:
    """Where a question about the unaltered logit wants a gradient: a layer, '' for the images; None for others."""
    if isinstance(question, Features):
        return question.layer
    single = isinstance(question, Gradients) and question.count == 1 and question.of == "logit" and question.at is None
    return "" if single else None


def _distinct(questions: Iterable[Question]) -> int:
    """How many passes an image takes for all questions; single variants are taken for the same."""
    total, single = 0, False
    for question in questions:
        if isinstance(question, Walk):
            total += question.passes
        elif isinstance(question, Several) and question.count > 1:
            total += question.count
        elif not isinstance(question, Activations):
            single = True
    return total + single


@contextmanager
def _listening(model: Model, layers: list[str]) -> Iterator[dict[str, Tensor]]:
    """The outputs of named layers; what follows sees a copy, so that an in-place ReLU cannot change them.

    Where gradients are followed they begin there, if nothing before asks for them.
    """
    heard: dict[str, Tensor] = {}

    def keep(name: str) -> Callable[[object, object, object], Tensor | None]:
        def hook(_module: object, _inputs: object, output: object) -> Tensor | None:
            if not isinstance(output, Tensor):
                return None
            if torch.is_grad_enabled() and not output.requires_grad:
                output = output.detach().requires_grad_()
            heard[name] = output
            return output.clone()

        return hook

    handles = []
    try:
        for layer in filter(None, layers):
            with suppress(AttributeError):  # who asks for a layer that is not there will be told
                handles.append(model.net.get_submodule(layer).register_forward_hook(keep(layer)))
        yield heard
    finally:
        for handle in handles:
            handle.remove()
