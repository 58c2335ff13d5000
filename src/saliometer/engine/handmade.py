"""The networks of the task handmade: built from its own shapes, with nothing trained."""

import hashlib
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from saliometer.engine.condition import Condition
from saliometer.models._logic import logic
from saliometer.registry import one_of
from saliometer.tasks.handmade import SHAPES, TASK
from saliometer.types import Model


def found(setting: str, folder: Path, condition: Condition) -> dict[int, str]:
    """seed -> the name of its files, as for trained models: there is one, of no file."""
    return {0: setting}


def load(setting: str, folder: Path | None = None, stem: str = "") -> Model:
    """Finds the cross and the ring; there is no file of weights to read."""
    net = logic(one_of("setting", setting, TASK.settings), torch.stack((SHAPES["cross"], SHAPES["ring"])))
    digest = hashlib.sha256(safetensors.torch.save(net.state_dict())).hexdigest()
    return Model(f"logic(rule={setting})", net, "relu2", digest, middle_layer="relu1")


def card(setting: str, folder: Path | None = None, stem: str = "") -> dict[str, Any]:
    """What the cards of trained models say; exact by construction, as tests/tasks/test_handmade.py shows."""
    return {
        "sha256": load(setting).fingerprint, "accepted": True, "accuracy": 1.0, "seed": 0, "labelling": "", "loss": "",
        "sampler": "disjoint", "weights": "set by hand",
    }  # fmt: skip
