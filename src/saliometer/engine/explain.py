"""Maps for any classifier and any images, by a method's name, a spec string or a callable."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Literal, overload

import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.checked import oddities, shown
from saliometer.engine.compiled import as_written, inner
from saliometer.engine.estimate import cost
from saliometer.engine.forward import forward_of, worth_preparing
from saliometer.engine.known import Known
from saliometer.engine.later import Later
from saliometer.engine.layers import cam_layer, middle_layer
from saliometer.engine.memory import fitting, made
from saliometer.engine.resolve import Asked, one_method
from saliometer.engine.score import Failure, Method, attributions
from saliometer.graph import Network, UnfitError, modules_of
from saliometer.maps import finite
from saliometer.registry import Spec
from saliometer.seeds import fork, forks
from saliometer.types import Batch, Explained, Model

Scale = float | tuple[float, ...]
Value = bool | int | float | str


@overload
def explain(
    model: Model | nn.Module, images: Tensor, method: Asked, targets: Tensor | None = None, *, channels: bool = False,
    references: Tensor | None = None, full: Literal[False] = False, mean: Scale = 0.0, std: Scale = 1.0,
    multilabel: bool = False, seed: int = 0, batch_size: int = 0, memory: float = 0.0, **params: Value,
) -> Tensor: ...  # fmt: skip


@overload
def explain(
    model: Model | nn.Module, images: Tensor, method: Asked, targets: Tensor | None = None, *, channels: bool = False,
    references: Tensor | None = None, full: Literal[True], mean: Scale = 0.0, std: Scale = 1.0,
    multilabel: bool = False, seed: int = 0, batch_size: int = 0, memory: float = 0.0, **params: Value,
) -> Explained: ...  # fmt: skip


def explain(
    model: Model | nn.Module, images: Tensor, method: Asked, targets: Tensor | None = None, *, channels: bool = False,
    references: Tensor | None = None, full: bool = False, mean: Scale = 0.0, std: Scale = 1.0,
    multilabel: bool = False, seed: int = 0, batch_size: int = 0, memory: float = 0.0, **params: Value,
) -> Tensor | Explained:  # fmt: skip
    """Signed maps (N, H, W) of the images, or with `channels` (N, C, H, W); explains the predicted class by default.

    `references` are other images of the data, for methods that compare with them. `full` gives an Explained: the maps,
    how far they are from what the method promises, and what is odd about them. `mean` and `std` say how pixels in
    [0, 1] were made into these images. The score is a class's logit; probabilities are a softmax, or with `multilabel`
    a sigmoid for each class. A model with one logit z has two classes: 1 with score z, 0 with score -z. `memory` is a
    limit in GiB.
    """
    _check_images("images", images)
    images = images.detach()  # they may be leaves of the caller's own graph
    if references is not None:
        _check_images("references", references)
        references = references.detach().to(images)
    if not isinstance(model, Model | nn.Module):
        raise ValueError(f"model is of type {type(model).__name__}, wanted a torch.nn.Module")
    if isinstance(model, nn.Module):
        model = inner(model)
    if targets is not None:
        _check_targets(targets, len(images))
    if batch_size < 0:
        raise ValueError(f"batch_size is {batch_size}: wanted 1 or more, or 0 to find it")
    if isinstance(method, str):
        spec = Spec.parse(method)
        method = str(Spec(spec.name, tuple(sorted((dict(spec.params) | params).items()))))
    elif params:
        raise ValueError("parameters go with a method's name; bind those of a callable with functools.partial")
    chosen = one_method(method)
    edges = _Edges(images, references, targets)

    def found_by(known: Known) -> Explained:
        wrapped = model if isinstance(model, Model) else _wrapped(model, images, known, chosen, mean, std, multilabel)
        size = batch_size or _fitting(known, wrapped, images, memory)
        return _explained(wrapped, images, chosen, targets, references, seed, size, known, edges)

    net, found = model.net if isinstance(model, Model) else model, None
    with as_written(net):
        known = Known(net, images[:1], believed=True, before=edges.check_finite)
        try:
            found = found_by(known)
        except Exception:
            if known.true:
                raise
        if found is None or not known.true:
            found = found_by(Known(net, images[:1], before=edges.check_finite))
    maps = found.maps if channels else found.maps.sum(1)
    return replace(found, maps=maps) if full else maps


class _Edges:
    """The smallest and largest values of what came, looked at while a GPU is at work."""

    def __init__(self, images: Tensor, references: Tensor | None, targets: Tensor | None) -> None:
        given = {"images": images, "references": references, "targets": targets}
        self.given = {name: values for name, values in given.items() if values is not None}
        self._seen: dict[str, Later] = {}

    def look(self) -> dict[str, Later]:
        """Sends them on their way to the host."""
        if not self._seen:
            self._seen = {name: Later(torch.stack(values.aminmax())) for name, values in self.given.items()}
        return self._seen

    def check_finite(self) -> None:
        """Both edges are NaN if any value is."""
        for name, later in self.look().items():
            if not all(map(math.isfinite, later.read())):
                raise ValueError(f"{name} hold NaN or infinity: wanted finite floating point numbers")

    def check_targets(self, model: Model, classes: int) -> None:
        low, high = self.look()["targets"].read() if "targets" in self.given else (0, 0)
        if low < 0 or high >= classes:
            raise ValueError(
                f"targets are {low}..{high}, but model '{model.name}' has {classes} classes, 0..{classes - 1}"
            )


def _explained(
    model: Model, images: Tensor, chosen: Method, targets: Tensor | None, references: Tensor | None, seed: int,
    size: int, known: Known, edges: _Edges,
) -> Explained:  # fmt: skip
    """Maps with their channels; refused where they, or what they were made of, is not what it should be."""
    classes = known("classes", lambda: _classes(model, images))
    passes: list[int] = []

    def check() -> None:
        edges.check_finite()
        edges.check_targets(model, classes)

    def watch(count: int) -> None:
        """The first pass is under way: does it run on what was believed? The second: was it given what it needs?"""
        passes.append(count)
        if len(passes) == 1:
            known.confirm()
            edges.look()
        elif len(passes) == 2:
            check()

    many = chosen.entry.facts.hides and worth_preparing(images, cost(chosen))
    forward = forward_of(model, images[:1]) if many else None
    answers = Answers(model, images.device, size, classes=classes, forward=forward, watch=watch)
    if targets is None:
        targets = answers.predicted(images)
    targets = targets.clamp(0, classes - 1)  # those beyond are refused, but a GPU must not see them
    batch = Batch(images, targets, _seeds(seed, len(images), images.device), references)
    found = attributions([chosen], answers, batch)[chosen.label]
    known.confirm()  # there may have been no pass
    check()
    whole = isinstance(found, Explained) and finite(found.maps)
    if not whole:
        _classes(model, images)  # if the model is to blame, that is what to say
    if isinstance(found, Failure):
        if "nference tensor" in str(found.error) and any(value.is_inference() for value in model.net.parameters()):
            raise ValueError(
                f"model '{model.name}' has weights that were made in inference mode, through which no gradient passes: "
                "build and load it outside torch.inference_mode()"
            ) from found.error
        if isinstance(found.error, ValueError | LookupError | MemoryError) and not chosen.own:
            raise found.error  # it says in words what was wrong
        raise RuntimeError(f"method '{chosen.label}' failed: {found.message}") from found.error
    if not whole and not chosen.own:
        _check_maps(found.maps, chosen.label, model, images)
    return found


@lru_cache(maxsize=8)
@torch.inference_mode(False)  # kept for callers in any mode
def _seeds(seed: int, count: int, device: torch.device) -> Tensor:
    return forks(fork("explain", seed), torch.arange(count, device=device))


def _fitting(known: Known, model: Model, images: Tensor, memory: float) -> int:
    """The batch size; on a GPU found once: the driver is slow to say what is free, and what does not fit backs off."""

    def found() -> int:
        return fitting(known("bytes", lambda: made(model.logits, images[:1])), images.device, memory)

    return known(f"batch within {memory} GiB", found) if images.device.type == "cuda" else found()


def _check_images(name: str, images: Tensor) -> None:
    if not isinstance(images, Tensor):
        raise ValueError(f"{name} are of type {type(images).__name__}, wanted a tensor of shape (N, C, H, W)")
    if images.ndim != 4 or not images.numel() or not images.is_floating_point():
        raise _unwanted(name, images)
    if images.dtype not in (torch.float32, torch.float64):
        raise ValueError(
            f"{name} are {images.dtype}: wanted float32 or float64, because attributions in half precision are mostly "
            f"rounding; use {name}.float() and model.float()"
        )


def _unwanted(name: str, images: Tensor) -> ValueError:
    came = f"shape {tuple(images.shape)}, {images.dtype}"
    return ValueError(f"{name} have {came}: wanted finite floating point numbers of shape (N, C, H, W), N of 1 or more")


def _classes(model: Model, images: Tensor) -> int:
    """How many classes the model has; an error in words if it does not run, or runs to no numbers."""
    with torch.inference_mode(False), torch.no_grad():
        image = images[:1].clone()
        before = image._version
    try:
        with torch.no_grad():
            logits = model.logits(image)
    except Exception as error:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(
            f"model '{model.name}' does not run on images of shape {tuple(images.shape[1:])} and {images.dtype} "
            f"({first}): wanted the size, channels and type it was built for"
        ) from error
    if image._version != before:
        raise ValueError(
            f"model '{model.name}' overwrites the images it is given: let its first operation make new ones"
        )
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 1:
        raise ValueError(
            f"model '{model.name}' gave {shown(logits)} for one image, wanted logits of shape (1, classes): "
            "wrap it in a module that returns those alone"
        )
    if not bool(logits.isfinite().all()):
        values = [*model.net.named_parameters(), *model.net.named_buffers()]
        bad = [name for name, value in values if value.is_floating_point() and not value.isfinite().all()]
        where = f"its weights '{bad[0]}' are not finite" if bad else "it overflows on these images"
        raise ValueError(f"model '{model.name}' gives logits that are not finite: {where}")
    return logits.shape[1]


def _check_targets(targets: Tensor, count: int) -> None:
    if not isinstance(targets, Tensor):
        raise ValueError(
            f"targets are of type {type(targets).__name__}, wanted an int64 tensor, one class for each image"
        )
    if targets.shape != (count,) or targets.dtype != torch.int64:
        came = f"shape {tuple(targets.shape)}, {targets.dtype}"
        raise ValueError(f"targets have {came}: wanted int64 of shape ({count},), one class for each image")


def _check_maps(maps: Tensor, label: str, model: Model, images: Tensor) -> None:
    bad = (~maps.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
    if bad:
        try:
            step = Network(model.net, model.logits).overflow(images[bad[0] : bad[0] + 1])
        except UnfitError:
            step = None
        where = "" if step is None else f": the model overflows on it, first in the operation {step}"
        raise ValueError(f"method '{label}' gives a map of image {bad[0]} that is not finite{where}")


def _wrapped(
    net: nn.Module, images: Tensor, known: Known, method: Method, mean: Scale, std: Scale, multilabel: bool
) -> Model:
    if any(getattr(module, "training", False) for module in modules_of(net)):  # before anything runs that changes it
        raise ValueError("the model is in train mode, where its output depends on the batch: call model.eval() first")
    if odd := oddities(net):
        raise ValueError(f"{odd[0]}; let them track running statistics, or use another normalisation")
    means, stds = ((v,) if isinstance(v, int | float) else tuple(v) for v in (mean, std))
    for name, values in (("mean", means), ("std", stds)):
        if len(values) not in (1, images.shape[1]):
            raise ValueError(f"{name} has {len(values)} values, wanted 1 or {images.shape[1]}, one for each channel")
    if any(value <= 0 for value in stds):
        raise ValueError(f"std is {std}: wanted values above 0")
    model = Model(type(net).__name__, net, "", "", means, stds, link="sigmoid" if multilabel else "softmax")
    if known("one logit", lambda: _has_one_logit(model, images)):
        model = replace(model, link="sigmoid")
    if "layer" not in method.entry.parameters:
        return model
    last = known("cam layer", lambda: cam_layer(net, images[:1]))
    middle = known("middle layer", lambda: middle_layer(net, images[:1]))
    return replace(model, cam_layer=last, middle_layer=middle)


def _has_one_logit(model: Model, images: Tensor) -> bool:
    _classes(model, images)
    with torch.no_grad():
        return bool(model.net(images[:1]).shape[1] == 1)
