"""Maps of pictures for people to look at: any model and images an audit takes, several methods, one class each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn

from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.asked import REFERENCES, UNIT
from saliometer.engine.bench import ALIGN
from saliometer.engine.class_names import class_names, names_in
from saliometer.engine.estimate import asked
from saliometer.engine.forward import forward_of, worth_preparing
from saliometer.engine.ready import batch_size_for, check_labels, model_given, model_ready, source_given
from saliometer.engine.request import Request
from saliometer.engine.resolve import one_method
from saliometer.engine.score import Failure, Method, attributions
from saliometer.engine.shipped import load
from saliometer.engine.source import Source, of_tensors
from saliometer.engine.thumbs import savez
from saliometer.maps import finite
from saliometer.tasks.textbox import textbox as scene
from saliometer.types import Explained, Model, Watch

DRAWN = 8  # images that a picture shows
WORDS = ("predicted", "least")


@dataclass(frozen=True, eq=False)
class Pictured:
    """What was explained, and every method's maps of it."""

    model: str
    ids: tuple[str, ...]
    targets: Tensor  # (N,) the class each map explains
    predicted: Tensor  # (N,)
    probabilities: Tensor  # (N, 2) of the class that is explained and of the predicted one
    names: tuple[str, ...]  # of the classes, where anybody knows
    maps: dict[str, Tensor]  # method -> (N, C, H, W), signed, as it gave them
    failed: dict[str, str]  # method -> why
    pixels: dict[int, Tensor]  # place among the images -> (C, H, W) in [0, 1], of those to be drawn
    left: int  # images that were not explained: a picture has no room for them
    warnings: tuple[str, ...]

    def called(self, number: int) -> str:
        """A class in words."""
        return f"{self.names[number]} ({number})" if number < len(self.names) else f"class {number}"


def pictured(
    model: str | nn.Module | Model,
    images: Path | str | Source,
    methods: Sequence[str],
    *,
    target: str = "predicted",
    every: bool = False,
    references: Tensor | None = None,
    weights: Path | None = None,
    limit: int = 0,
    multilabel: bool = False,
    seed: int = 0,
    device: str = "auto",
    watch: Watch = lambda share, text: None,
    **taken: Any,
) -> Pictured:
    """Explain pictures as `audit` would: its loading, its classes, its noise, so that its scores are of these maps.

    `target` is predicted, least or a class's number. Of more than DRAWN images some are taken by lot, unless `every`
    one is wanted. A method that fails leaves the others alone. `taken` is how the model takes images, as for audit.
    """
    chosen = [one_method(name) for name in dict.fromkeys(methods)]
    place = devices.find(device)
    usual = {"mean": None, "std": None, "size": 0, "output": "auto", "resize": 0, "classes": 0}
    loaded = model_given(model, weights, **(usual | taken))
    facts = loaded.facts
    source = source_given(images, None, None, loaded.preprocessing, limit, "")
    ready = model_ready(loaded, source, multilabel, place)
    names = class_names(model, str(facts["name"])) if isinstance(model, str) else ()
    source = check_labels(source, int(facts["classes"]), facts, "predicted", names)
    if references is None and any(method.entry.facts.needs_references for method in chosen):
        references = _references(chosen, source, seed, place)
    references = None if references is None else references.to(place)
    drawn = source.some(DRAWN, seed)
    shown = source if every else drawn
    first = shown.samples(0, 1, seed, place).batch
    room = batch_size_for(ready, first.images, place, 0.0)
    each = {
        method: asked(method, Answers(ready, place, room), replace(first, references=references)) for method in chosen
    }
    many = sum(passes for method, passes in each.items() if method.entry.facts.hides)
    lean = worth_preparing(first.images, many * len(shown))
    forward = forward_of(ready, first.images) if lean else None
    answers = Answers(ready, place, room, align=min(ALIGN, room), forward=forward)
    expected = max(1.0, sum(each.values()) * len(shown))
    answers.watch = lambda _: watch(min(1.0, answers.passes / expected), answers.doing)
    maps: dict[str, list[Tensor]] = {method.label: [] for method in chosen}
    failed, pixels, answered, explained = dict[str, str](), dict[int, Tensor](), list[Tensor](), list[Tensor]()
    for start in range(0, len(shown), UNIT):
        samples = shown.samples(start, min(start + UNIT, len(shown)), seed, place)
        answered.append(_logits(ready, samples.batch.images))
        explained.append(_targets(target, answered[-1], ready.name))
        batch = replace(
            samples.batch, targets=explained[-1], references=None if references is None else references.to(place)
        )
        for method in chosen:
            found = None if method.label in failed else attributions([method], answers, batch)[method.label]
            if isinstance(found, Explained) and finite(found.maps):
                maps[method.label].append(found.maps.cpu())
            elif found is not None:
                failed[method.label] = _told(method, found)
        kept = [place for place, name in enumerate(samples.ids) if name in drawn.ids]
        pixels |= {start + one: ready.pixels(batch.images[one : one + 1])[0].clamp(0, 1).cpu() for one in kept}
    logits, targets = torch.cat(answered), torch.cat(explained)
    odds = logits.sigmoid() if ready.link == "sigmoid" else logits.softmax(1)
    both = torch.stack((targets, logits.argmax(1)), 1)
    return Pictured(
        str(facts["name"]), shown.ids, targets.cpu(), both[:, 1].cpu(), odds.gather(1, both).cpu(),
        names or names_in(source),
        {label: torch.cat(parts) for label, parts in maps.items() if label not in failed}, failed, pixels,
        len(source) - len(shown), (*facts["warnings"], *(f"left out {name}: {why}" for name, why in source.skipped)),
    )  # fmt: skip


@torch.no_grad()
def _logits(model: Model, images: Tensor) -> Tensor:
    logits = model.logits(images)
    if not finite(logits):
        raise ValueError(f"model '{model.name}' gives logits that are not finite: nothing can be explained")
    return logits


def _targets(target: str, logits: Tensor, model: str) -> Tensor:
    if target.lstrip("-").isdecimal():
        number, classes = int(target), logits.shape[1]
        if not 0 <= number < classes:
            raise ValueError(f"--target {number}: model '{model}' has {classes} classes, 0..{classes - 1}")
        return torch.full((len(logits),), number, device=logits.device)
    if target not in WORDS:
        raise ValueError(f"--target {target}: wanted {', '.join(WORDS)} or the number of a class")
    return logits.argmax(1) if target == "predicted" else logits.argmin(1)


def _references(methods: Sequence[Method], source: Source, seed: int, place: torch.device) -> Tensor:
    needy = [method.label for method in methods if method.entry.facts.needs_references]
    if len(source) < 2:
        raise ValueError(
            f"method '{needy[0]}' compares with other images, and there is only one: give a folder of several"
        )
    return source.references(REFERENCES, seed, place)


def _told(method: Method, found: Explained | Failure) -> str:
    """In the method's own words, where it has some; its name is in them."""
    if isinstance(found, Explained):
        return f"method '{method.label}' returned NaN or infinity"
    if method.own or not isinstance(found.error, ValueError | LookupError):
        return f"method '{method.label}' failed: {found.message}"
    words = str(found.error)
    return words if f"'{method.label}'" in words else f"method '{method.label}': {words}"


def keep_maps(found: Pictured, path: Path) -> dict[str, Path]:
    """The maps as `audit --maps` reads them: one npz, or one for each of several methods; the files by method."""
    places = dict[str, Path]()
    for label, maps in found.maps.items():
        word = re.sub(r"[^A-Za-z0-9_.=-]+", "-", label).strip("-")
        places[label] = path if len(found.maps) == 1 else path.with_name(f"{path.stem}-{word}{path.suffix}")
        savez(places[label], maps=maps.numpy(), ids=np.array(found.ids), targets=found.targets.numpy())
    return places


def textbox(
    setting: str, sample: int, image: Path | None, methods: Sequence[str], target: str, seed: int, device: str,
    watch: Watch,
) -> Pictured:  # fmt: skip
    """One image of the benchmark, or a picture of that size, explained on the model of a setting."""
    model = load(setting)
    if sample < 0:
        raise ValueError(f"--sample {sample}: wanted 0 or more")
    if image is not None:
        images, name = _picture(image), image.name
    else:
        images, name = scene(setting, start=sample, count=1, seed=seed).batch.images, f"test-{sample}"
    compared = any(one_method(method).entry.facts.needs_references for method in methods)
    references = Request((setting,), seed=seed).references(setting) if compared else None
    source = replace(of_tensors(images), ids=(name,))
    found = pictured(
        model, source, methods, target=target, references=references, seed=seed, device=device, watch=watch
    )
    return replace(found, model=f"{model.name} of {setting}")


def _picture(path: Path) -> Tensor:
    """(1, 3, 64, 64): a file's pixels as they are."""
    try:
        with Image.open(path) as picture:
            pixels = np.asarray(picture.convert("RGB"), dtype=np.float32) / 255
    except (OSError, UnidentifiedImageError) as error:
        raise ValueError(f"cannot read the image '{path}' ({error})") from error
    if pixels.shape != (64, 64, 3):
        height, width, _ = pixels.shape
        raise ValueError(f"'{path}' is {width}x{height}, wanted 64x64, which the TextBox models take: resize it first")
    return torch.from_numpy(pixels).permute(2, 0, 1)[None]
