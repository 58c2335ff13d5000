"""Models of a task of one's own: a folder that `saliometer train my_task.py` wrote."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch

from saliometer import registry
from saliometer.engine.shipped import CAM_LAYERS, MIDDLE_LAYERS
from saliometer.registry import one_of
from saliometer.tasks import Task
from saliometer.types import Model


@dataclass(frozen=True, eq=False)
class Trained:
    """Reads the models of one task, and refuses those of another."""

    task: Task
    file: str  # where the task is written, to say how to train

    def card(self, setting: str, folder: Path) -> dict[str, Any]:
        """Where the weights come from and what they rely on."""
        path = folder / f"{one_of('setting', setting, self.task.settings)}.json"
        command = f"`saliometer train {self.file} --setting {setting} --out {folder}`"
        try:
            card: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise ValueError(f"no readable card '{path}' ({error}): train the model with {command}") from error
        if card.get("digest") != self.task.digest(setting):
            raise ValueError(f"'{path}' is of another version of the task '{self.file}': train it anew with {command}")
        return card

    def load(self, setting: str, folder: Path) -> Model:
        """The model of a setting, its weights checked against the card and widened to float32."""
        card, path = self.card(setting, folder), folder / f"{setting}.safetensors"
        data = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(data).hexdigest()
        if digest != card["sha256"]:
            raise ValueError(f"weights '{path}' are missing or not those of their card: train them anew")
        name = card["model"]
        net = registry.models[name].function(self.task.classes, 3)
        net.load_state_dict({part: value.float() for part, value in safetensors.torch.load(data).items()})
        net.eval().requires_grad_(False)
        return Model(f"{name}(seed={card['seed']})", net, CAM_LAYERS[name], digest, middle_layer=MIDDLE_LAYERS[name])
