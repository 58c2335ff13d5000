"""Models of a task of one's own: a folder that `saliometer train my_task.py` wrote."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from saliometer import registry
from saliometer.engine.condition import Condition
from saliometer.engine.shipped import CAM_LAYERS, MIDDLE_LAYERS
from saliometer.engine.train_own import ARCH
from saliometer.registry import Spec, one_of
from saliometer.tasks import Task
from saliometer.types import Model


@dataclass(frozen=True, eq=False)
class Trained:
    """Reads the models of one task, and refuses those of another."""

    task: Task
    file: str  # where the task is written, to say how to train

    def found(self, setting: str, folder: Path, condition: Condition) -> dict[int, str]:
        """seed -> the name of its files, for every model of a setting that a folder holds."""
        one_of("setting", setting, self.task.settings)
        wanted, stems = str(Spec.parse(condition.arch or ARCH)), dict[int, str]()
        for path in sorted(folder.glob(f"{setting}*.json")):
            told = _read(path)
            if told.get("setting") == setting and told.get("model") == wanted:
                stems[self.card(setting, folder, path.stem)["seed"]] = path.stem
        if not stems:
            arch = f" --arch '{condition.arch}'" if condition.arch else ""
            raise ValueError(
                f"no model of {setting} ({wanted}) in '{folder}': train one with {self._command(setting)}{arch}"
            )
        return dict(sorted(stems.items()))

    def card(self, setting: str, folder: Path, stem: str = "") -> dict[str, Any]:
        """Where the weights come from and what they rely on."""
        path = folder / f"{stem or setting}.json"
        card = _read(path)
        if card.get("digest") != self.task.digest(setting):
            raise ValueError(f"'{path}' is of another version of the task: train it anew with {self._command(setting)}")
        return card

    def load(self, setting: str, folder: Path, stem: str = "") -> Model:
        """The model of a setting, its weights checked against the card and widened to float32."""
        card, path = self.card(setting, folder, stem), folder / f"{stem or setting}.safetensors"
        data = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(data).hexdigest()
        if digest != card["sha256"]:
            raise ValueError(f"weights '{path}' are missing or not those of their card: train them anew")
        network = Spec.parse(card["model"])
        net = registry.models[network.name].function(self.task.classes, 3, **dict(network.params))
        net.load_state_dict(safetensors.torch.load(data))  # copied into float32
        net.eval().requires_grad_(False)
        name = str(Spec(network.name, tuple(sorted((dict(network.params) | {"seed": card["seed"]}).items()))))
        layers = CAM_LAYERS[network.name], MIDDLE_LAYERS[network.name]
        return Model(name, net, layers[0], digest, middle_layer=layers[1])

    def _command(self, setting: str) -> str:
        return f"`saliometer train {self.file} --setting {setting}`"


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable card '{path}' ({error}): train the model with `saliometer train`") from error
