"""Which of a setting's models is meant: what lies behind the objects, which network, trained how, from which seed."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saliometer import registry
from saliometer.engine import own
from saliometer.registry import Spec, Value
from saliometer.seeds import forks
from saliometer.tasks._backgrounds import BACKGROUNDS, SPLITS, background, parsed, photographs_of

CLASSES, CHANNELS = 2, 3
FEW = 20  # photographs; with fewer, scores may be those of the photographs


def architecture(setting: str) -> str:
    """The network of SMERF that a setting has unless another is asked for."""
    return "simple_cnn" if setting.startswith("simple") else "complex_cnn"


@dataclass(frozen=True)
class Condition:
    """The default is the models that ship: SMERF's own networks on black."""

    background: str = "black"
    arch: str = ""  # a model, maybe with parameters, 'alexnet(width=0.5)'; '' for the setting's own
    robust: bool = False  # trained further on attacked images

    def __post_init__(self) -> None:
        object.__setattr__(self, "background", _checked_background(self.background))
        if self.arch:
            spec = Spec.parse(self.arch)
            spec.check("model", registry.models[spec.name])
            object.__setattr__(self, "arch", str(spec))

    def network(self, setting: str) -> Spec:
        return Spec.parse(self.arch or architecture(setting))

    def build(self, setting: str) -> nn.Module:
        """A fresh network, its weights from the global generator."""
        return built(self.network(setting))

    def name(self, setting: str, seed: int) -> str:
        """As rows print it: `complex_cnn(background=noise,robust=true,seed=1)`."""
        network = self.network(setting)
        more: dict[str, Value] = {"seed": seed}
        if self.background != "black":
            more["background"] = self.shown
        if self.robust:
            more["robust"] = True
        return str(Spec(network.name, tuple(sorted((dict(network.params) | more).items()))))

    def stem(self, setting: str, seed: int) -> str:
        """As files are named: `complex-cr1`, `complex-cr1.alexnet.noise.robust.seed1`."""
        network = str(self.network(setting))
        parts = [network if network != architecture(setting) else "", "" if self.shown == "black" else self.shown]
        parts += ["robust" * self.robust, f"seed{seed}" if seed else ""]
        return ".".join([setting, *(re.sub(r"[^A-Za-z0-9_=-]+", "-", part).strip("-") for part in parts if part)])

    @property
    def shown(self) -> str:
        """The background without the path to a folder or file."""
        spec = parsed(self.background)
        if own.is_own(spec.name):
            return own.label(spec)
        params = {key: Path(str(value)).name if key == "folder" else value for key, value in spec.params}
        return str(Spec(spec.name, tuple(params.items())))

    def told(self, setting: str = "") -> dict[str, Any]:
        """What a card or request says of it: nothing of what is as usual."""
        found: dict[str, Any] = {}
        if self.background != "black":
            found["background"] = self.shown if setting else self.background
        if self.arch and self.arch != (architecture(setting) if setting else ""):
            found["model" if setting else "arch"] = self.arch
        return found | ({"robust": True} if self.robust else {})

    def behind(self) -> dict[str, Any]:
        """What lies behind the objects in full: the photographs' number and hash, a user's file's hash."""
        spec = parsed(self.background)
        if own.is_own(spec.name):
            where = spec.name.rpartition(":")[0]
            return {"background_sha256": own.fingerprint(BACKGROUNDS[spec.name], where)}
        return photographs_of(self.background)


def built(network: Spec) -> nn.Module:
    net: nn.Module = registry.models[network.name].function(CLASSES, CHANNELS, **dict(network.params))
    return net


def few_photographs(behind: dict[str, Any]) -> str:
    """What to say of natural backgrounds that few photographs lie behind; '' where there are enough, or none."""
    counts = behind.get("photographs")
    if not counts or min(counts[split] for split in SPLITS) >= FEW:
        return ""
    return (
        f"the backgrounds show few photographs ({counts['train']} in training images, {counts['test']} in test images, "
        f"{counts['split']}; {behind['photographs_from']}): scores may depend on them. --background natural:FOLDER "
        "takes yours"
    )


def _checked_background(text: str) -> str:
    """The background as a Spec prints it, one of the user's own loaded; raises where it cannot be drawn."""
    named = Spec.parse(text) if not text.startswith("natural:") else None
    if named and own.is_own(named.name):
        BACKGROUNDS[named.name] = own.load(named.name, "background", "(seeds, *, split) -> (N, 3, 64, 64)")
    for split in SPLITS:
        behind = background(text, split)
        images = behind(forks(0, torch.arange(2))) if behind else torch.zeros(2, 3, 64, 64)
        if not isinstance(images, torch.Tensor) or images.shape != (2, 3, 64, 64) or images.dtype != torch.float32:
            came = f"{tuple(images.shape)}, {images.dtype}" if isinstance(images, torch.Tensor) else type(images)
            raise ValueError(f"background '{text}' gives {came} for 2 seeds, wanted (2, 3, 64, 64), torch.float32")
        if not bool(((images >= 0) & (images <= 1)).all()):
            raise ValueError(f"background '{text}' gives values that are not in [0, 1]")
    return str(parsed(text))


PLAIN = Condition()
