"""What a training on images leaves in its folder, card, weights and checkpoints, and the network made of them again."""

import json
from pathlib import Path
from typing import Any

from torch import nn

from saliometer.engine.architectures import built
from saliometer.engine.train import digest_of
from saliometer.engine.weights import fit, read
from saliometer.images import Preprocessing
from saliometer.registry import Spec
from saliometer.seeds import scoped

CARD, FINAL, RUNNING, FOLDER = "card.json", "final.safetensors", "training.checkpoint", "checkpoints"


def is_trained(place: Path | str) -> bool:
    """Whether there is a folder that `train_images` wrote."""
    return (Path(place) / CARD).is_file()


def read_card(folder: Path) -> dict[str, Any]:
    try:
        card = json.loads((folder / CARD).read_text())
        if not isinstance(card, dict) or "arch" not in card or "recipe" not in card:
            raise ValueError("it is not a card of `saliometer train images`")
    except (OSError, ValueError) as error:
        raise ValueError(f"'{folder / CARD}' cannot be read ({error}): train into another folder") from error
    return card


def load_trained(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The network of a folder that `train_images` wrote, in eval mode on the CPU, and its card."""
    folder = Path(folder)
    card = read_card(folder)
    if not card.get("finished"):
        raise ValueError(
            f"the training in '{folder}' is not finished: the same `saliometer train images` goes on there"
        )
    path = folder / FINAL
    if not is_whole(folder, card):
        raise ValueError(f"weights '{path}' are missing or not those of their card: train them anew")
    spec = Spec.parse(card["arch"])
    with scoped("overwritten"):
        net = built(spec, len(card["classes"]), card["side"], tuple(card["recipe"]["hidden"]))
    fit(net, read(path), f"'{path}'")
    return net.eval().requires_grad_(False), card


def name_of(card: dict[str, Any]) -> str:
    """What rows call a trained network: `vit_tiny(data=cifar10,init=random,seed=0)`."""
    spec = Spec.parse(card["arch"])
    params = dict(spec.params) | {"data": card["data"]["name"], "init": card["init"], "seed": card["seed"]}
    params |= {"frozen": True} if card["recipe"]["frozen"] else {}
    return str(Spec(spec.name, tuple(sorted(params.items()))))


def preprocessing_of(card: dict[str, Any]) -> Preprocessing:
    told = card["preprocessing"]
    return Preprocessing(**{**told, "mean": tuple(told["mean"]), "std": tuple(told["std"])})


def checkpoints_of(folder: Path) -> list[Path]:
    """The files of its checkpoints, epoch by epoch; the last holds the final weights."""
    found = (Path(folder) / FOLDER).glob("epoch_*.safetensors")
    return sorted(found, key=lambda path: int(path.stem.split("_")[1]))


def is_whole(folder: Path, card: dict[str, Any]) -> bool:
    """Whether the final weights are there and those of the card."""
    path = folder / FINAL
    return path.is_file() and digest_of(path.read_bytes()) == card["sha256"]


def difference(there: dict[str, Any], asked: dict[str, Any], prefix: str = "") -> str:
    """The first thing in which what is asked for is another than what is there, in words; '' if in none."""
    for name, value in asked.items():
        held = there.get(name)
        if isinstance(value, dict) and isinstance(held, dict):
            if found := difference(held, value, f"{prefix}{name} "):
                return found
        elif held != value:
            return f"its {prefix}{name} is {held}, and {value} is asked for"
    return ""
