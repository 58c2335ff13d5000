"""Trains a classifier on images under COSE's operations, with checkpoints along the way, and loads it again.

A training is a folder: checkpoints/epoch_NN.safetensors, final.safetensors, card.json and, while it runs,
training.checkpoint.
"""

import json
import math
import platform
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer import __version__
from saliometer.cose.training import steps_of
from saliometer.engine.architectures import Arch, arch_given, in_head
from saliometer.engine.data import Data
from saliometer.engine.device import exact
from saliometer.engine.image_cards import (
    CARD,
    FINAL,
    FOLDER,
    RUNNING,
    checkpoints_of,
    difference,
    is_trained,
    is_whole,
    load_trained,
    read_card,
)
from saliometer.engine.initial import First, first_weights, started
from saliometer.engine.recipes import OURS, ImageRecipe, optimiser_of, plateau_of, recipe_for, schedule_of
from saliometer.engine.shown import Shown
from saliometer.engine.train import digest_of, write_card
from saliometer.files import put
from saliometer.images import Preprocessing
from saliometer.images.labelled import checked_labels
from saliometer.models._loop import Kept, Learning, loop
from saliometer.sanity.layers import keeps_statistics
from saliometer.sanity.randomise import REFERENCES, TOGETHER, estimate
from saliometer.seeds import fork, forks, uniform
from saliometer.types import Watch

__all__ = ["checkpoints_of", "load_trained", "train_images"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GATE = 0.75  # of test images right, that the paper asks of a model
CHECKPOINTS = 10
KEEP_EVERY = 20.0  # seconds of work that a kill may cost, beside the epoch it falls in


@dataclass(eq=False)
class Log:
    """What was measured at each checkpoint; goes on with the training."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def state_dict(self) -> dict[str, Any]:
        return {"entries": self.entries, "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.entries, self.seconds = list(state["entries"]), state["seconds"]


def train_images(
    data: Data, arch: str, out: Path, *, init: str = "random", frozen: bool | None = None, recipe: str = "",
    epochs: int = 0, seed: int = 0, device: str = "cpu", amp: bool | None = None, batch: int = 0, rate: float = 0,
    limit: int = 0, side: int = 0, watch: Watch = lambda share, text: None,
) -> dict[str, Any]:  # fmt: skip
    """Train and return the card; the same call goes on where an earlier one was killed.

    `frozen` None is as the recipe has it (ours: not), `recipe` '' our own, `epochs`, `batch`, `rate` 0 the recipe's,
    `limit` caps the training images, `side` 0 is the network's usual one; `amp` None takes bfloat16 on a GPU.
    """
    kind, spec = arch_given(arch)
    first = first_weights(spec, init)
    chosen = _recipe(recipe_for(recipe, kind.name, first.origin), epochs, batch, rate, frozen, limit)
    place = torch.device(device)
    half = place.type == "cuda" if amp is None else amp
    data, side = _limited(data, limit), side or kind.side_for(data.side)
    kind.check_side(side)
    way, shown_as = _ways(kind, data, side)
    net = started(first, len(data.classes), side, chosen.hidden, seed)
    card = _settled(data, first, chosen, seed, side, shown_as, "bfloat16" if half else "float32")
    known = _card_there(out, card)
    if known.get("finished"):
        return known
    if not known:
        write_card(out / CARD, card | {"finished": False})
    final = _trained(net, kind, data, way, chosen, card, out, place, half, watch)
    (out / RUNNING).unlink(missing_ok=True)
    return final


def _recipe(found: ImageRecipe, epochs: int, batch: int, rate: float, frozen: bool | None, limit: int) -> ImageRecipe:
    if min(epochs, batch, limit) < 0 or rate < 0 or batch == 1:
        raise ValueError(
            f"epochs {epochs}, batch {batch}, rate {rate}, limit {limit}: wanted 0 (the usual) or more, and batches of "
            "2 or more"
        )
    found = replace(found, epochs=epochs or found.epochs, batch=batch or found.batch, rate=rate or found.rate)
    return found if frozen is None else replace(found, frozen=frozen)


def _limited(data: Data, limit: int) -> Data:
    """The first so many training images, as many of each class as can be, in an order of our own."""
    if not limit or limit >= len(data.train):
        return data
    order = uniform(forks(fork("limit"), torch.arange(len(data.train))), "order")
    by_class = torch.zeros_like(data.train_labels)  # the place of an image among those of its class
    for label in range(len(data.classes)):
        mine = (data.train_labels == label).nonzero().flatten()
        by_class[mine] = order[mine].argsort().argsort()
    kept = (by_class * len(data.classes) + data.train_labels).argsort()[:limit].sort().values
    labels = data.train_labels[kept]
    checked_labels(labels, data.test_labels, data.classes, f"{data.name}, {limit} images")
    return replace(data, train=data.train[kept], train_labels=labels)


def _ways(kind: Arch, data: Data, side: int) -> tuple[Preprocessing, Preprocessing]:
    """What is still to be done with the data's pixels, and what that comes to for pictures from elsewhere."""
    resize = side if data.side == side else kind.resize_for(side)
    whole = data.resized if data.resized and data.side == side else resize
    return Preprocessing(resize, side, MEAN, STD), Preprocessing(whole, side, MEAN, STD)


def _settled(
    data: Data, first: First, recipe: ImageRecipe, seed: int, side: int, way: Preprocessing, precision: str
) -> dict[str, Any]:
    """All that decides what comes out, as a card says it."""
    card = {
        "arch": str(first.spec), **first.told, "seed": seed, "classes": data.classes, "side": side,
        "preprocessing": asdict(way),
        "data": {
            "name": data.name, "sha256": data.sha256, "train": len(data.train), "test": len(data.test),
            "largest_class": float(data.test_labels.bincount().max()) / len(data.test), "notes": data.notes,
        },
        "recipe": asdict(recipe), "precision": precision,
    }  # fmt: skip
    found: dict[str, Any] = json.loads(json.dumps(card))
    return found


def _card_there(out: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The card of the same training, finished or not; another one's is not written over."""
    if not is_trained(out):
        return {}
    card = read_card(out)
    if other := difference(card, wanted):
        raise ValueError(f"'{out}' holds another training: {other}. Give another --out")
    return card if not card.get("finished") or is_whole(out, card) else {}


def checkpoint_epochs(epochs: int) -> list[int]:
    """After which epochs weights are kept: every tenth of them, one epoch apart at least; the last is the end."""
    return sorted({-(-number * epochs // CHECKPOINTS) for number in range(1, CHECKPOINTS + 1)})


def _trained(
    net: nn.Module, kind: Arch, data: Data, way: Preprocessing, recipe: ImageRecipe, card: dict[str, Any], out: Path,
    place: torch.device, half: bool, watch: Watch,
) -> dict[str, Any]:  # fmt: skip
    memory_format = torch.channels_last if kind.convolutions else torch.contiguous_format
    net.to(place).to(memory_format=memory_format)
    if recipe.frozen:
        for name, values in net.named_parameters():
            values.requires_grad_(in_head(kind, name))
    train = Shown.on(place, data.train, data.train_labels, way, memory_format)
    test = Shown.on(place, data.test, data.test_labels, way, memory_format)
    some = train.every(-(-len(data.train) // len(data.test)))  # to see how much better it is on what it has seen
    optimiser = optimiser_of(net, recipe)
    steps = recipe.epochs * steps_of(len(data.train), recipe.batch)
    learning = Learning(
        optimiser, lambda logits, labels: F.cross_entropy(logits, labels, label_smoothing=recipe.smoothing),
        schedule_of(optimiser, recipe, steps), recipe.clip, lambda: _precision(place, half),
    )  # fmt: skip
    plateau, log, at = plateau_of(optimiser, recipe), Log(), checkpoint_epochs(recipe.epochs)
    name, seed, before = f"{card['arch']} on {data.name}", card["seed"], time.monotonic()

    def ended(epoch: int, loss: float) -> None:
        nonlocal before
        if not math.isfinite(loss):
            raise ValueError(
                f"the training of {name} diverged in epoch {epoch} (its loss is {loss}): try a lower --rate than "
                f"{recipe.rate:g}"
            )
        if plateau is not None:
            plateau.step(test.measured(net, _precision(place, half))[0])
        log.seconds, before = log.seconds + time.monotonic() - before, time.monotonic()
        if epoch in at:
            if recipe.name == OURS:
                _settle(net, train, epoch, recipe, seed)
            log.entries.append(_checkpoint(net, out, epoch, loss, some, test))
            write_card(out / CARD, card | _so_far(log) | {"finished": False})

    def tell(share: float, text: str) -> None:
        last = f", test {100 * log.entries[-1]['test_accuracy']:.1f} %" if log.entries else ""
        watch(share, f"{name}, {text} of {recipe.epochs}{last}")

    parts: dict[str, Any] = {"log": log} | ({"plateau": plateau} if plateau is not None else {})
    kept = Kept(out / RUNNING, {"run": digest_of(json.dumps(card, sort_keys=True))}, parts, KEEP_EVERY)
    with exact():
        loop(
            net, lambda epoch: train.batches(epoch, recipe.batch, seed, recipe.jitter), train.labels, learning,
            recipe.epochs, seed, kept, ended=ended, watch=tell,
        )  # fmt: skip
    weights = safetensors.torch.save(_state(net))
    put(out / FINAL, weights)
    full = card | _so_far(log) | {"finished": True, "sha256": digest_of(weights)}
    full |= {
        "trained_on": str(place),
        "parameters": sum(values.numel() for values in net.parameters()),
        "versions": _versions(),
    }
    write_card(out / CARD, full)
    return full


def _precision(place: torch.device, half: bool) -> AbstractContextManager[Any]:
    return torch.autocast(place.type, torch.bfloat16, enabled=half)


def _settle(net: nn.Module, train: Shown, epoch: int, recipe: ImageRecipe, seed: int) -> None:
    """Batch norms get the statistics of the weights as they are now, on images of the epoch that has ended.

    Those of the last steps are of weights that were others; after few steps that can cost all that was learnt.
    """
    norms = [module for module in net.modules() if keeps_statistics(module)]
    if norms:
        batches = islice(train.batches(epoch - 1, recipe.batch, seed, recipe.jitter), -(-REFERENCES // recipe.batch))
        images = torch.cat([images for _, images in batches])[:REFERENCES]
        estimate(net.eval(), norms, images[: steps_of(len(images), TOGETHER) * TOGETHER])


def _checkpoint(net: nn.Module, out: Path, epoch: int, loss: float, train: Shown, test: Shown) -> dict[str, Any]:
    """Weights in a file, and how good they are in full precision."""
    path = out / FOLDER / f"epoch_{epoch:02d}.safetensors"
    data = safetensors.torch.save(_state(net))
    put(path, data)
    (_, train_accuracy), (test_loss, test_accuracy) = train.measured(net), test.measured(net)
    return {
        "epoch": epoch, "file": f"{FOLDER}/{path.name}", "sha256": digest_of(data), "loss": loss,
        "train_accuracy": train_accuracy, "test_accuracy": test_accuracy, "test_loss": test_loss,
    }  # fmt: skip


def _state(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in net.state_dict().items()}


def _so_far(log: Log) -> dict[str, Any]:
    last = log.entries[-1]
    reached = last["test_accuracy"]
    says = f"{'passes' if reached >= GATE else 'misses'} {100 * GATE:.0f} %"
    return {
        "checkpoints": log.entries, "seconds": round(log.seconds, 1), "train_accuracy": last["train_accuracy"],
        "test_accuracy": reached, "gate": {"wanted": GATE, "got": reached, "passes": reached >= GATE, "says": says},
    }  # fmt: skip


def _versions() -> dict[str, str]:
    return {
        "saliometer": __version__, "torch": torch.__version__, "torchvision": torchvision.__version__,
        "python": platform.python_version(),
    }  # fmt: skip
