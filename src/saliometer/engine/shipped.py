"""The trained TextBox models: those inside the package, or a folder that `train` wrote."""

import hashlib
import json
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch

from saliometer.engine.train import architecture, build
from saliometer.registry import one_of
from saliometer.tasks.textbox import SETTINGS
from saliometer.types import Model

FOLDER = Path(__file__).parent.parent / "models" / "shipped"
CAM_LAYERS = {"simple_cnn": "relu3", "complex_cnn": "relu4"}
MIDDLE_LAYERS = {"simple_cnn": "relu2", "complex_cnn": "relu2"}


def card(setting: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Where the weights come from and what they rely on."""
    path = folder / f"{one_of('setting', setting, SETTINGS)}.json"
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable card '{path}' ({error}): train the model with `saliometer train`") from error


def load(setting: str, folder: Path = FOLDER) -> Model:
    """A model of the benchmark, its weights checked against the card and widened to float32."""
    told, path = card(setting, folder), folder / f"{setting}.safetensors"
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
    net = build(setting)
    net.load_state_dict({name: value.float() for name, value in safetensors.torch.load(data).items()})
    net.eval().requires_grad_(False)
    name = architecture(setting)
    return Model(f"{name}(seed={told['seed']})", net, CAM_LAYERS[name], digest, middle_layer=MIDDLE_LAYERS[name])
