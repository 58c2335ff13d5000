"""Robust TextBox models: a plain model, trained further on images that PGD attacks in every step."""

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from saliometer.engine import shipped
from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.device import memory_format
from saliometer.engine.train import (
    by_bucket,
    digest_of,
    examine,
    held_out,
    rounded,
    save,
    settled_by,
    so_far,
    train,
    training_set,
    write_card,
)
from saliometer.models._pgd import Attack, pgd
from saliometer.models.fit import CONSTANT, Recipe, fit
from saliometer.seeds import fork, forks
from saliometer.tasks.textbox import labels_of
from saliometer.types import Watch

ATTACK, EPOCHS, BATCH = Attack(), 10, 256
RATE = 1e-3  # the sheet's 1e-4 leaves letters undefended: a third of attacked ones are read (docs/results/smerf.md)
RAMP = 0.5  # the share of training in which the attack grows to its size; whole from the start, little is learned
LIBRARY = "adversarial-robustness-toolbox"  # imports as art
BY_LIBRARY = 1000  # held out images that its attack is tried on
TOGETHER = 512  # images attacked at once when a model is measured


def trained(setting: str, out: Path, *, condition: Condition = PLAIN, **params: Any) -> dict[str, Any]:
    """A plain or a robust model, as the condition says; its card."""
    return (train_robust if condition.robust else train)(setting, out, condition=condition, **params)


def train_robust(
    setting: str, out: Path, *, condition: Condition, seed: int = 0, device: str = "cpu", labelling: str = "paper",
    sampler: str = "disjoint", loss: str = "cross_entropy", epochs: int = 0, batch: int | None = None,
    rate: float | None = None, limit: int = 0, attack: Attack = ATTACK, ramp: float = RAMP,
    watch: Watch = lambda share, text: None, **plainly: Any,
) -> dict[str, Any]:  # fmt: skip
    """From the plain model of the same seed, which is trained first where it is not there; the card.

    `epochs`, `batch` and `rate` are of this training; the plain one has its own. A `ramp` of 0 attacks in full from the
    first step on. One that misses the bar, or whose plain model did, is kept and said to be not accepted.
    """
    batch, rate = BATCH if batch is None else batch, RATE if rate is None else rate
    recipe = Recipe(epochs or EPOCHS, batch, rate, loss, CONSTANT)
    if recipe.batch < 1 or not recipe.rate > 0 or epochs < 0 or limit < 0:
        raise ValueError(
            f"batch is {recipe.batch}, rate {recipe.rate}, epochs {epochs} and limit {limit}: wanted 1 or more, more "
            "than 0, and twice 0 or more"
        )
    if not 0 <= ramp <= 1:
        raise ValueError(f"ramp is {ramp}: wanted 0 to 1, the share of training in which the attack grows")
    plain = Condition(condition.background, condition.arch)
    same = {"seed": seed, "device": device, "labelling": labelling, "sampler": sampler, "loss": loss, "limit": limit}
    folder, first = _plain_model(setting, out, plain, same | plainly, watch)
    stem = condition.stem(setting, seed)
    scene, labels = training_set(setting, seed, condition, labelling, sampler, limit, device)
    settled = settled_by(setting, seed, condition, labelling, sampler, len(labels))
    settled |= {"plain_sha256": first["sha256"], "attack": vars(attack), "ramp": ramp}
    path = out / f"{stem}.json"
    card, _ = so_far(path, settled | vars(recipe))
    if not card:
        net = shipped.load(setting, folder, plain.stem(setting, seed)).net.requires_grad_(True).to(device)
        _freeze(net, condition, setting)
        layout = memory_format(torch.device(device), net)
        net.to(memory_format=layout)

        def attacked(images: Tensor, truth: Tensor, chosen: Tensor, done: float) -> Tensor:
            grown = attack.grown(done / (ramp * recipe.epochs)) if ramp else attack
            images = images.contiguous(memory_format=layout)
            return pgd(net, images, truth, grown, forks(fork(seed, "attack", int(done)), chosen))

        checkpoint = out / f"{stem}.{digest_of(repr(settled))[:8]}.checkpoint"
        final = fit(
            net, lambda chosen: scene[chosen].images(), labels, recipe, fork(seed, "robust"), altered=attacked,
            checkpoint=checkpoint, watch=lambda share, text: watch(share, f"{stem}, {text} of {recipe.epochs}"),
        )  # fmt: skip
        told = settled | vars(recipe) | {"attempt": 0, "tried": 1, "final_loss": final, "trained_on": device}
        told |= {name: first[name] for name in ("features",) if name in first}
        told |= examine(net, setting, seed=seed, labelling=labelling, sampler=sampler, condition=condition)
        told |= {"plain_accepted": first["accepted"], "accepted": told["accepted"] and first["accepted"]}
        told |= _measured(net, setting, seed, labelling, sampler, condition, attack)
        card = save(net, out / f"{stem}.safetensors", told)
        checkpoint.unlink(missing_ok=True)
    if card["robust_accuracy_by_library"] is None and library_version():
        net = shipped.load(setting, out, stem).net.to(device)
        card = card | by_library(net, setting, seed, labelling, sampler, condition, attack)
        write_card(path, card)
    return card


def _plain_model(
    setting: str, out: Path, plain: Condition, params: dict[str, Any], watch: Watch
) -> tuple[Path, dict[str, Any]]:
    """The folder and card of the plain model: the one that ships, where it is that one, or one that is trained here.

    With few images it is still the shipped one that learns from them.
    """
    usual = {"seed": 0, "labelling": "paper", "sampler": "disjoint", "loss": "cross_entropy"}
    ships = plain == PLAIN and all(params[name] == value for name, value in usual.items())
    if ships and not (out / f"{plain.stem(setting, 0)}.json").exists():
        return shipped.FOLDER, shipped.card(setting)
    return out, train(setting, out, condition=plain, watch=watch, **params)


def _freeze(net: nn.Module, condition: Condition, setting: str) -> None:
    """As the network is built: what is not trained in the plain model is not trained here."""
    for mine, fresh in zip(net.parameters(), condition.build(setting).parameters(), strict=True):
        mine.requires_grad_(fresh.requires_grad)


def _measured(
    net: nn.Module, setting: str, seed: int, labelling: str, sampler: str, condition: Condition, attack: Attack
) -> dict[str, Any]:
    """How often the stored weights are right on held out images that our PGD has attacked."""
    device = str(next(net.parameters()).device)
    stored = rounded(net).requires_grad_(False)
    scene = held_out(setting, seed, sampler, device, condition.background)
    labels = labels_of(setting, scene.buckets, labelling)
    seeds = forks(fork(seed, "attack", "held out"), torch.arange(len(labels), device=device))
    right = []
    for start in range(0, len(labels), TOGETHER):
        part = slice(start, start + TOGETHER)
        images = pgd(stored, scene[part].images(), labels[part], attack, seeds[part])
        with torch.no_grad():
            right.append(stored(images).argmax(1) == labels[part])
    buckets = by_bucket(torch.cat(right), scene)
    return {
        "robust_accuracy": sum(buckets.values()) / len(buckets),
        "robust_accuracy_per_bucket": buckets,
        "robust_accuracy_by_library": None,
        "library_attack": f"not measured: {LIBRARY} is not installed (pip install 'saliometer[robust]'); the same "
        "command measures it once it is",
    }


def library_version() -> str:
    """'' where it is not installed; another package imports as art, too."""
    try:
        return metadata.version(LIBRARY)
    except metadata.PackageNotFoundError:
        return ""


def by_library(
    net: nn.Module, setting: str, seed: int, labelling: str, sampler: str, condition: Condition, attack: Attack
) -> dict[str, Any]:
    """The same with the PGD of the Adversarial Robustness Toolbox, on the first held out images."""
    device = str(next(net.parameters()).device)
    scene = held_out(setting, seed, sampler, device, condition.background)[slice(0, BY_LIBRARY)]
    labels = labels_of(setting, scene.buckets, labelling)
    images = library_pgd(net, scene.images(), labels, attack, random_starts=1, seed=fork(seed, "library") % 2**31)
    with torch.no_grad():
        right = (net(images).argmax(1) == labels).double().mean().item()
    told = f"PGD of {LIBRARY} {library_version()} on {len(labels)} held out images"
    return {"robust_accuracy_by_library": right, "library_attack": told}


def library_pgd(
    net: nn.Module, images: Tensor, labels: Tensor, attack: Attack, random_starts: int, seed: int = 0
) -> Tensor:
    """The library's attacked images; its random numbers are numpy's global ones, which come back as they were."""
    from art.attacks.evasion import ProjectedGradientDescentPyTorch
    from art.estimators.classification import PyTorchClassifier

    classes = net(images[:1]).shape[1]
    classifier = PyTorchClassifier(
        net, nn.CrossEntropyLoss(), tuple(images.shape[1:]), classes, clip_values=(0.0, 1.0),
        device_type="gpu" if images.is_cuda else "cpu",
    )  # fmt: skip
    method = ProjectedGradientDescentPyTorch(
        classifier, norm=np.inf, eps=attack.eps, eps_step=attack.step, max_iter=attack.iterations,
        num_random_init=random_starts, batch_size=256, verbose=False,
    )  # fmt: skip
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    try:
        found = method.generate(x=images.cpu().numpy(), y=labels.cpu().numpy())
    finally:
        np.random.set_state(state)  # noqa: NPY002
    return torch.from_numpy(found).to(images)
