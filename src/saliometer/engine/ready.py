"""A user's model and images, made ready: loaded, checked against each other, on their device."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliometer.engine.checked import LogProbabilities, as_logits, checked_model, stirred
from saliometer.engine.compiled import inner, write_out
from saliometer.engine.layers import cam_layer, middle_layer
from saliometer.engine.memory import fitting, made
from saliometer.engine.source import Source, numbers, of_batches, of_photographs, of_pictures, of_tensors
from saliometer.engine.subjects import described, in_single, input_channels, load_model
from saliometer.files import printable
from saliometer.images import Preprocessing, read_images
from saliometer.images.read import LISTED
from saliometer.types import Model

Scale = float | Sequence[float] | None
STILL = "it gives every image the same scores, noise too, so that nothing can be explained: check weights and input"
OUTSIDE = 0.02  # how far a pixel may be from [0, 1]
Images = Path | str | Tensor | Source | Iterable[Any]


@dataclass(frozen=True, eq=False)
class Loaded:
    """A network as it was asked for, how it takes pictures, and what a run's manifest says of it."""

    net: nn.Module
    facts: dict[str, Any]
    preprocessing: Preprocessing | None  # None where images come as the network takes them
    mean: tuple[float, ...]
    std: tuple[float, ...]
    output: str  # what it gives, as far as that is known: one of checked.OUTPUTS
    whole: Model | None = None  # where it came as one of ours
    names: tuple[str, ...] = ()  # of its classes, where they are known


def model_given(
    model: str | nn.Module | Model | Loaded, weights: Path | str | None, mean: Scale, std: Scale, size: int,
    output: str, resize: int = 0, classes: int = 0,
) -> Loaded:  # fmt: skip
    """A model by name, or a copy of a network that the caller holds."""
    if isinstance(model, Loaded):
        return model
    if isinstance(model, str):
        file = Path(weights) if weights else None
        net, preprocessing, facts = load_model(
            model, weights=file, classes=classes, mean=mean, std=std, size=size, resize=resize, output=output
        )
        left = "auto" if output == "auto" else "logit"  # probabilities were turned into logits when it was loaded
        return Loaded(net, facts, preprocessing, preprocessing.mean, preprocessing.std, left)
    net = model.net if isinstance(model, Model) else model
    if not isinstance(net, nn.Module):
        raise ValueError(f"model is of type {type(model).__name__}, wanted a torch.nn.Module or a name")
    net = inner(net)
    if weights:
        raise ValueError("weights go with a model's name: load them into the network yourself")
    if any(module.training for module in net.modules()):
        raise ValueError("the model is in train mode, where its output depends on the batch: call model.eval() first")
    means, stds = _values(mean, 0.0), _values(std, 1.0)
    if size and (mean is None or std is None):
        raise ValueError(
            "nothing says how the model takes pictures: give mean and std (0 and 1 for pixels from 0 to 1)"
        )
    channels = input_channels(net)
    given = Preprocessing(resize or size, size, means, stds, channels=channels) if size else None
    copy = deepcopy(net)
    write_out(copy)
    remarks = in_single(copy)
    if isinstance(model, Model):
        told = _told(copy, model.name, model.mean, model.std, remarks)
        return Loaded(copy, told, None, model.mean, model.std, output, model)
    facts = _told(copy, type(net).__name__, means, stds, remarks)
    facts |= {"preprocessing": asdict(given)} if given else {}
    return Loaded(copy, facts, given, means, stds, output)


def _told(
    net: nn.Module, name: str, mean: tuple[float, ...], std: tuple[float, ...], remarks: list[str]
) -> dict[str, Any]:
    facts = described(net, name) | {"preprocessing": {"mean": mean, "std": std}}
    return facts | {"warnings": remarks + facts["warnings"]}


def source_given(
    images: Images, labels: Any, masks: Any, preprocessing: Preprocessing | None, limit: int, name: str
) -> Source:
    """Images by place, as a tensor, or from a DataLoader."""
    if isinstance(images, Source):
        return images
    if limit < 0:
        raise ValueError(f"limit is {limit}: wanted 1 or more, or 0 for all")
    if isinstance(images, str | Path):
        if preprocessing is None:
            raise ValueError(
                "nothing says how the model takes pictures: give size, mean and std, or images as a tensor"
            )
        if str(images) == "photographs" and not Path(images).exists():
            return of_photographs(preprocessing, limit)
        for what, came in (("labels", labels), ("masks", masks)):
            if came is not None and not isinstance(came, str | Path):
                kind = type(came).__name__
                raise ValueError(f"{what} of images in files: {kind} came, wanted the place of a file or folder")
        pictures = read_images(
            images, labels=Path(labels) if labels is not None else None, masks=Path(masks) if masks else None,
            limit=limit,
        )  # fmt: skip
        return of_pictures(pictures, preprocessing, name or _short(images))
    if isinstance(labels, str | Path) or isinstance(masks, str | Path):
        raise ValueError("labels and masks in files go with images in files: give tensors with a tensor of images")
    given = None if labels is None else numbers(labels)
    if isinstance(images, Tensor):
        chosen = slice(limit or None)
        cut = None if masks is None else masks[chosen]
        return of_tensors(images[chosen], None if given is None else given[chosen], cut, name or "images")
    if not isinstance(images, Iterable) or hasattr(images, "__array__"):
        raise ValueError(
            f"images are of type {type(images).__name__}: wanted a tensor (N, C, H, W), a DataLoader or a place"
        )
    if labels is not None or masks is not None:
        raise ValueError("labels and masks go with a tensor of images; a DataLoader's batches hold their own labels")
    return of_batches(images, limit)


def _short(place: Path | str) -> str:
    path = Path(place).absolute()
    if path.name == LISTED:
        return printable(path.parent.name)
    return printable(path.stem if path.suffix in (".csv", ".npz") else path.name or str(place))


def model_ready(loaded: Loaded, source: Source, multilabel: bool, place: torch.device) -> Model:
    """The model on its device, frozen, checked on the first images, with the layers that CAMs read."""
    net = loaded.net.to(place)
    images = source.images(0, min(4, len(source)), place)
    _check_scale(loaded, images)
    inner = net.net if isinstance(net, LogProbabilities) else net
    loaded.facts["classes"] = checked_model(inner, images, loaded.output)
    if STILL not in loaded.facts["warnings"] and not stirred(inner, images):
        loaded.facts["warnings"] = [*loaded.facts["warnings"], STILL]
    if loaded.output == "probability":
        net = as_logits(net, images)
        way = "its logarithm taken" if isinstance(net, LogProbabilities) else "its last layer taken out"
        loaded.facts["output"] = f"probability, {way}"
    with torch.no_grad():
        one_logit = net(images[:1]).shape[1] == 1
    if loaded.whole is not None:
        name = _inside(net, loaded.whole.cam_layer), _inside(net, loaded.whole.middle_layer)
        return replace(loaded.whole, net=net, cam_layer=name[0], middle_layer=name[1])
    return Model(
        str(loaded.facts["name"]), net, cam_layer(net, images[:1]), str(loaded.facts["sha256"]), loaded.mean,
        loaded.std,
        middle_layer=middle_layer(net, images[:1]), link="sigmoid" if multilabel or one_logit else "softmax",
    )  # fmt: skip


def _check_scale(loaded: Loaded, images: Tensor) -> None:
    """Raise where mean and std are not the images'; warn where pixels would not lie in [0, 1]."""
    for what, values in (("mean", loaded.mean), ("std", loaded.std)):
        if len(values) not in (1, images.shape[1]) or (what == "std" and min(values) <= 0):
            wanted = f"one number or {images.shape[1]}, as the images have channels" + ", above 0" * (what == "std")
            raise ValueError(f"{what} is {values}: wanted {wanted}")
    mean, std = (Model.channels(images, values) for values in (loaded.mean, loaded.std))
    pixels = images * std + mean
    low, high = float(pixels.min()), float(pixels.max())
    if low < -OUTSIDE or high > 1 + OUTSIDE:
        loaded.facts["warnings"] = [
            *loaded.facts["warnings"],
            f"with mean {loaded.mean} and std {loaded.std} pixels reach from {low:.3g} to {high:.3g}, not from 0 to 1: "
            "give those that the images were normalised with, for black and noise are made by them",
        ]


def _inside(net: nn.Module, layer: str) -> str:
    """What a layer is called now: a wrapped network's are one further in."""
    return f"net.{layer}" if layer and isinstance(net, LogProbabilities) else layer


def _values(given: Scale, otherwise: float) -> tuple[float, ...]:
    value = otherwise if given is None else given
    return (float(value),) if isinstance(value, int | float) else tuple(float(one) for one in value)


def check_labels(
    source: Source, classes: int, facts: dict[str, Any], target: str, names: Sequence[str] = ()
) -> Source:  # fmt: skip
    """The source, if its labels can be the model's classes; without labels that are not.

    Folders and words of a CSV are classes by their names, where the model's `names` are known and all are among them;
    else by their place, if there are as many as the model has classes.
    """
    folders, said = source.pictures.classes if source.pictures else (), ""
    if source.labels is None or source.pictures is None or int(source.labels.max()) >= len(folders):
        return _in_range(source, classes, facts)
    if folders == tuple(names):  # they were looked up before
        return _in_range(source, classes, facts)
    known = _places(names)
    found = {folder: known.get(_plain(folder), []) for folder in folders}
    if all(len(places) == 1 for places in found.values()):
        numbers = torch.tensor([places[0] for places in found.values()])
        named = replace(source.pictures, classes=tuple(names))
        return replace(source, labels=numbers[source.labels], pictures=named)
    if any(found.values()):
        name, places = next((name, places) for name, places in found.items() if len(places) != 1)
        what, verb = (f"{len(places)} classes", "have") if places else ("no class", "has")
        said = f"labels are names of classes, but {what} of model '{facts['name']}' {verb} the name '{name}'"
    elif len(folders) != classes:
        said = (
            f"labels count the {len(folders)} folders or names of pictures ({', '.join(folders[:3])}, ...), but model "
            f"'{facts['name']}' has {classes} classes"
        )
    if not said:
        return source
    said += ": name folders by class number, or give labels in numbers"
    if target == "label":
        raise ValueError(said)
    facts["warnings"] = [*facts.get("warnings", []), f"{said}; they were left aside"]
    return replace(source, labels=None)


def _places(names: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        found.setdefault(_plain(name), []).append(place)
    return found


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _in_range(source: Source, classes: int, facts: dict[str, Any]) -> Source:
    if source.labels is None:
        return source
    beyond = (source.labels >= classes).nonzero().flatten().tolist()
    if beyond:
        first = beyond[0]
        raise ValueError(
            f"label {int(source.labels[first])} of '{source.ids[first]}' is out of range: model '{facts['name']}' has "
            f"{classes} classes, 0..{classes - 1}"
        )
    return source


def batch_size_for(model: Model, image: Tensor, place: torch.device, memory: float) -> int:
    return min(fitting(made(model.logits, image), place, memory), 512)
