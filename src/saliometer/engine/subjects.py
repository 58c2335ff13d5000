"""The classifier that is to be judged, by name: torchvision's, timm's, one of ours, or the user's own."""

import hashlib
import importlib.util
import inspect
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliometer.engine import own, shipped, zoo
from saliometer.engine.checked import LogProbabilities, as_logits, checked_model, oddities
from saliometer.engine.image_cards import FINAL, is_trained, load_trained, name_of, preprocessing_of
from saliometer.engine.weights import check_finite, fingerprint, fit, read
from saliometer.engine.zoo import Found
from saliometer.images import Preprocessing
from saliometer.registry import Spec
from saliometer.seeds import scoped, uniform

__all__ = ["LogProbabilities", "as_logits", "checked_model", "described", "load_model"]

Scale = float | Sequence[float] | None
TEXTBOX_SIDE = 64


def load_model(
    name: str,
    *,
    weights: Path | None = None,
    classes: int = 0,
    mean: Scale = None,
    std: Scale = None,
    size: int = 0,
    resize: int = 0,
    output: str = "auto",
) -> tuple[nn.Module, Preprocessing, dict[str, Any]]:
    """A checked classifier in eval mode, how it takes images, and what a run's manifest says of it.

    `classes` 0 is as many as it has; `size` and `resize` 0, `mean` and `std` None are as its weights were trained.
    """
    found = _trained(Path(name), weights) if is_trained(name) else _found(Spec.parse(name), weights, classes)
    net = _plain(found)
    preprocessing = _preprocessing(found, mean, std, size, resize)
    probe = _probe(preprocessing)
    held = checked_model(net, probe, output)
    if classes > 1 and classes != held:
        raise ValueError(f"--classes {classes}, but model '{found.name}' has {held}: leave it away, or build it so")
    facts = described(net, found.name) | {
        "classes": held,
        "weights": found.source,
        "preprocessing": asdict(preprocessing),
        "output": "logit",
    }
    facts["warnings"] = found.warnings + facts["warnings"]
    if output == "probability":
        net = as_logits(net, probe)
        way = "its logarithm taken" if isinstance(net, LogProbabilities) else "its last layer taken out"
        facts["output"] = f"probability, {way}"
    return net, preprocessing, facts


def described(net: nn.Module, name: str) -> dict[str, Any]:
    """What a run's manifest says of a network that came as it is."""
    return {
        "name": name,
        "parameters": sum(values.numel() for values in net.parameters()),
        "weights": "as given",
        "sha256": fingerprint(net),
        "warnings": oddities(net),
    }


def _found(spec: Spec, file: Path | None, classes: int) -> Found:
    library, colon, rest = spec.name.partition(":")
    inner = Spec(rest, spec.params)
    if library == "torchvision" and colon:
        return zoo.from_torchvision(inner, file, classes)
    if library == "timm" and colon:
        return zoo.from_timm(inner, file, classes)
    if library == "textbox" and colon:
        return _textbox(inner, file)
    if own.is_own(spec.name):
        return _own(spec, file, classes)
    if spec.name == zoo.LITE:
        return zoo.from_lite(spec, file, classes)
    if spec.name in zoo.torchvision_names():
        return zoo.from_torchvision(spec, file, classes)
    module, _, name = spec.name.rpartition(".")
    if name == "py":
        raise ValueError(f"model '{spec}' is a file: wanted file.py:name, a network or what builds one")
    if module and _importable(module):
        return _own(Spec(f"{module}:{name}", spec.params), file, classes)
    return zoo.from_timm(spec, file, classes)


def _importable(module: str) -> bool:
    """Whether a dotted path begins with a module that is there; timm's names have dots, too."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _textbox(spec: Spec, file: Path | None) -> Found:
    if spec.params:
        raise ValueError(f"'textbox:{spec}': a TextBox model takes no parameters")
    net = shipped.load(spec.name).net
    if file:
        fit(net, read(file), f"'{file}'")
    preprocessing = Preprocessing(TEXTBOX_SIDE, TEXTBOX_SIDE, (0.0,) * 3, (1.0,) * 3)
    source = f"'{file.name}'" if file else "shipped with saliometer"
    return Found(zoo.named(Spec(f"textbox:{spec.name}"), file), net, preprocessing, source)


def _trained(folder: Path, file: Path | None) -> Found:
    """A folder that `saliometer train images` wrote; a file is another checkpoint of the same network."""
    net, card = load_trained(folder)
    if file:
        fit(net, read(file), f"'{file}'")
    source = f"'{file.name}'" if file else f"'{FINAL}' in '{folder.name}', sha256 {card['sha256'][:12]}"
    spec = Spec.parse(name_of(card))
    return Found(zoo.named(spec, file), net, preprocessing_of(card), source)


def _own(spec: Spec, file: Path | None, classes: int) -> Found:
    """What stands at the place: a module, or a class or function that makes one."""
    with scoped("model", str(spec)):  # fresh weights are the same in every run
        maker = own.load(spec.name, "model", "() -> nn.Module, or a module")
        net: Any = maker if isinstance(maker, nn.Module) and not spec.params else _called(maker, spec, classes)
    if not isinstance(net, nn.Module):
        raise ValueError(f"model '{spec}' gives {type(net).__name__}, wanted an nn.Module")
    source = f"as built by '{own.label(spec)}'"
    place = spec.name.rpartition(":")[0]
    if place.endswith(".py"):
        source += f", file sha256 {hashlib.sha256(Path(place).read_bytes()).hexdigest()[:12]}"
    if file:
        fit(net, read(file), f"'{file}'")
        source = f"'{file.name}', in a network {source}"
    preprocessing, warnings = zoo.timm_preprocessing(net) if hasattr(net, "pretrained_cfg") else (None, [])
    label = Spec(spec.name.rpartition(":")[2], spec.params)
    return Found(zoo.named(label, file), net, preprocessing, source, warnings)


def _called(maker: Any, spec: Spec, classes: int) -> Any:
    options: dict[str, Any] = dict(spec.params)
    try:
        accepted = list(inspect.signature(maker).parameters)
    except (TypeError, ValueError):  # some compiled callables have none
        accepted = []
    word = next((word for word in ("classes", "num_classes") if word in accepted), "")
    if classes and word:
        options.setdefault(word, classes)
    try:
        return maker(**options)
    except (Exception, SystemExit) as error:
        told = ", ".join(f"{key}={value!r}" for key, value in options.items())
        reason = f"{type(error).__name__}: {error}"
        ask = f": it may want --classes for its '{word}'" if word and word not in options else ""
        raise ValueError(f"model '{spec}' failed when called with ({told}): {reason}{ask}") from error


def _plain(found: Found) -> nn.Module:
    """On the CPU in float32, its weights there and finite."""
    if any(nn.parameter.is_lazy(values) for values in [*found.net.parameters(), *found.net.buffers()]):
        raise ValueError(f"model '{found.name}' has lazy layers without weights: call it on an image when building it")
    net = found.net.cpu()
    found.warnings.extend(in_single(net))
    check_finite(net, f"of '{found.name}'")
    return net


def in_single(net: nn.Module) -> list[str]:
    """Bring a network to float32; what is to be said of weights that were not."""
    kinds = {values.dtype for values in net.parameters()} - {torch.float32}
    net.float()
    return [f"weights of type {', '.join(sorted(map(str, kinds)))} are run as torch.float32"] if kinds else []


def _preprocessing(found: Found, mean: Scale, std: Scale, size: int, resize: int) -> Preprocessing:
    """As found, less what was given: a new size keeps the share that is cut away."""
    if size < 0 or resize < 0:
        raise ValueError(f"--size {size} --resize {resize}: wanted whole numbers above 0")
    told = found.preprocessing
    if told is None:
        wanted = {"--mean": mean is None, "--std": std is None, "--size": not size}
        absent = [option for option, lacking in wanted.items() if lacking]
        if absent:
            raise ValueError(
                f"nothing says how model '{found.name}' takes images: pass {', '.join(absent)} "
                "(--mean 0 --std 1 for pixels from 0 to 1)"
            )
        told = Preprocessing(size, size)
    crop = size or told.crop
    short = resize or (told.resize if crop == told.crop else round(crop * told.resize / told.crop))
    if short < crop:
        raise ValueError(f"--resize {short} is below the size {crop} that is cut out: pass --resize {crop} or more")
    means = told.mean if mean is None else _values("--mean", mean)
    stds = told.std if std is None else _values("--std", std)
    channels = max(len(means), len(stds))
    channels = input_channels(found.net) if channels == 1 else channels
    if channels not in (1, 3) or not {len(means), len(stds)} <= {1, channels}:
        taken = input_channels(found.net)
        came = f"--mean has {len(means)} values and --std {len(stds)}, the model takes {taken} channels"
        raise ValueError(f"{came}: wanted colour or grey images, 3 or 1 channels, and one value or one for each")
    if min(stds) <= 0:
        raise ValueError(f"--std is {stds}: wanted values above 0")
    if max(means) > 1:
        raise ValueError(
            f"--mean is {means}, but pixels go from 0 to 1: wanted at most 1; divide --mean and --std by 255 if they "
            "are for pixels from 0 to 255"
        )
    means, stds = (values * channels if len(values) == 1 else values for values in (means, stds))
    return replace(told, resize=short, crop=crop, mean=means, std=stds, channels=channels)


def _values(option: str, given: float | Sequence[float]) -> tuple[float, ...]:
    values = (float(given),) if isinstance(given, int | float) else tuple(map(float, given))
    if not values or not all(map(math.isfinite, values)):
        raise ValueError(f"{option} is {given}: wanted one finite number, or one for each channel")
    return values


def input_channels(net: nn.Module) -> int:
    """What the first convolution takes; 3 where there is none."""
    first = next((module for module in net.modules() if isinstance(module, nn.Conv2d)), None)
    return first.in_channels if first else 3


def _probe(preprocessing: Preprocessing) -> Tensor:
    """(1, C, H, W): pixels of noise as the model takes them."""
    channels = len(preprocessing.mean)
    pixels = uniform(torch.zeros(1, dtype=torch.int64), "probe", channels, preprocessing.crop, preprocessing.crop)
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (preprocessing.mean, preprocessing.std))
    return (pixels - mean) / std
