"""The trained TextBox models: those inside the package, or a folder that `train` wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from saliometer.engine.condition import PLAIN, Condition, architecture, built
from saliometer.registry import Spec, one_of
from saliometer.tasks.textbox import SETTINGS
from saliometer.types import Model

FOLDER = Path(__file__).parent.parent / "models" / "shipped"
CAM_LAYERS = {
    "resnet20": "layer3", "convnext_tiny": "features", "vit_tiny": "encoder.layers.encoder_layer_8.ln_1",
    "swin_tiny": "features.5.1.norm1", "digit_cnn": "relu2",
    "simple_cnn": "relu3", "complex_cnn": "relu4", "alexnet": "relu5", "vgg16": "relu5_3", "resnet18": "layer4",
    "vit_small": "encoder.layers.encoder_layer_5.ln_1",
}  # fmt: skip
MIDDLE_LAYERS = {
    "resnet20": "layer2", "convnext_tiny": "features.3", "vit_tiny": "conv_proj", "swin_tiny": "features.3",
    "digit_cnn": "relu1", "simple_cnn": "relu2", "complex_cnn": "relu2", "alexnet": "relu2", "vgg16": "relu4_3",
    "resnet18": "layer3", "vit_small": "conv_proj",
}  # fmt: skip


def found(setting: str, folder: Path = FOLDER, condition: Condition = PLAIN) -> dict[int, str]:
    """seed -> the name of its files, for every model of a setting that a folder holds under a condition."""
    wanted, behind, stems = condition.name(setting, 0), condition.behind(), dict[int, str]()
    for path in sorted(folder.glob(f"{one_of('setting', setting, SETTINGS)}*.json")):
        told = card(setting, folder, path.stem)
        if told.get("setting") != setting or _name(told | {"seed": 0}) != wanted:
            continue
        if any(told.get(name) != value for name, value in behind.items()):
            raise ValueError(
                f"'{path}' was trained on other photographs or another background of that name than you ask for: "
                "name the one it was trained on, or train it anew"
            )
        if told["seed"] in stems:
            twins = f"'{stems[told['seed']]}' and '{path.stem}'"
            raise ValueError(f"'{folder}' holds two models of {_name(told)} for {setting}, {twins}: keep one of them")
        stems[told["seed"]] = path.stem
    if not stems and condition == PLAIN:
        card(setting, folder)  # says that it is not there
    if not stems:
        option = "".join(f" --{name}" if value is True else f' --{name} "{value}"' for name, value in _asked(condition))
        raise ValueError(
            f"no model of {setting} in '{folder}' is {wanted.replace('seed=0', 'seed=...')}: train one with "
            f"`saliometer train textbox --setting {setting}{option} --out FOLDER`, then --models FOLDER"
        )
    return dict(sorted(stems.items()))


def _asked(condition: Condition) -> list[tuple[str, Any]]:
    return list(condition.told().items())


def card(setting: str, folder: Path = FOLDER, stem: str = "") -> dict[str, Any]:
    """Where the weights come from and what they rely on."""
    path = folder / f"{stem or one_of('setting', setting, SETTINGS)}.json"
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable card '{path}' ({error}): train the model with `saliometer train`") from error


def load(setting: str, folder: Path = FOLDER, stem: str = "") -> Model:
    """A model of the benchmark, its weights checked against the card and widened to float32."""
    told, path = card(setting, folder, stem), folder / f"{stem or setting}.safetensors"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read weights '{path}' ({error.strerror}): reinstall, or train them anew") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != told["sha256"]:
        raise ValueError(
            f"weights '{path}' are corrupt: sha256 {digest[:12]}, their card says {told['sha256'][:12]}. "
            "Reinstall saliometer, or train them anew with `saliometer train`"
        )
    network = Spec.parse(told.get("model", architecture(setting)))
    net = built(network)
    net.load_state_dict(safetensors.torch.load(data))  # copied into float32
    net.eval().requires_grad_(False)
    name = network.name
    return Model(_name(told), net, CAM_LAYERS[name], digest, middle_layer=MIDDLE_LAYERS[name])


def _name(told: dict[str, Any]) -> str:
    """What rows call the model of a card."""
    network = Spec.parse(told["model"])
    more = {name: told[name] for name in ("background", "robust", "seed") if name in told}
    return str(Spec(network.name, tuple(sorted((dict(network.params) | more).items()))))
