"""Trains models of a task of one's own, examined by the same rule as TextBox's."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from saliometer import registry
from saliometer.engine.train import RESTARTS, acceptance, rounded, until_accepted
from saliometer.models.fit import LOSSES, Recipe
from saliometer.registry import Spec, one_of
from saliometer.seeds import fork, scoped
from saliometer.tasks import Task
from saliometer.types import Watch

ARCH = "simple_cnn"
PER_BUCKET, EPOCHS, BATCH = 1000, 6, 128  # a few minutes on two cores
HELD_OUT, PAIRS = 200, 100  # images per bucket, counterfactual pairs per bucket and edit
OVERALL = 0.95


def stem(setting: str, arch: str = "", seed: int = 0) -> str:
    """As files are named: `crossing`, `crossing.complex_cnn.seed1`."""
    parts = [arch if arch != ARCH else "", f"seed{seed}" if seed else ""]
    return ".".join([setting, *(re.sub(r"[^A-Za-z0-9_=-]+", "-", part).strip("-") for part in parts if part)])


def train_own(
    task: Task, setting: str, out: Path, *, seed: int = 0, device: str = "cpu", arch: str = "",
    loss: str = "cross_entropy", epochs: int = 0, batch: int | None = None, rate: float | None = None, limit: int = 0,
    restarts: int = RESTARTS, watch: Watch = lambda share, text: None,
) -> dict[str, Any]:  # fmt: skip
    """Train from fresh initialisations until one is accepted; the best is kept either way and its card returned.

    `limit` caps the training images, `epochs` 0 takes the usual number.
    """
    one_of("setting", setting, task.settings)
    one_of("loss", loss, LOSSES)
    network = Spec.parse(arch or ARCH)
    network.check("model", registry.models[network.name])
    recipe = Recipe(epochs or EPOCHS, BATCH if batch is None else batch, Recipe.rate if rate is None else rate, loss)
    if recipe.batch < 1 or not recipe.rate > 0 or restarts < 1 or epochs < 0 or limit < 0:
        raise ValueError(
            f"batch {batch}, rate {rate}, restarts {restarts}, epochs {epochs}, limit {limit}: wanted 1 or more, more "
            "than 0, 1 or more, and twice 0 or more (0: the usual)"
        )
    out.mkdir(parents=True, exist_ok=True)
    count = PER_BUCKET * len(task.cycle(setting, "train"))
    scene = task.draw(setting, "train", torch.arange(min(count, limit) if limit else count, device=device), seed)
    settled = {
        "setting": setting, "seed": seed, "images": len(scene.buckets), "model": str(network), "task": task.name,
        "digest": task.digest(setting), "labelling": "", "sampler": "disjoint",
    }  # fmt: skip

    def fresh(attempt: int) -> tuple[nn.Module, dict[str, Any]]:
        with scoped(f"{task.name} weights", setting, seed, attempt):
            return registry.models[network.name].function(task.classes, 3, **dict(network.params)), {}

    return until_accepted(
        fresh, lambda net: examine(net, task, setting, seed), scene, task.labels_of(setting, scene.buckets), recipe,
        settled, out / stem(setting, str(network), seed), seed=seed, device=device, restarts=restarts, watch=watch,
    )  # fmt: skip


def examine(net: nn.Module, task: Task, setting: str, seed: int = 0) -> dict[str, Any]:
    """What the acceptance rule asks, measured on the weights as they are stored: rounded to float16."""
    device = str(next(net.parameters()).device)
    indices = torch.arange(HELD_OUT * len(task.cycle(setting, "test")), device=device)
    scene = task.draw(setting, "test", indices, fork("held out", seed))

    def labels(buckets: Tensor) -> Tensor:
        return task.labels_of(setting, buckets)

    pairs = (pair for n in task.reasonings(setting) for pair in task.counterfactuals(setting, n, PAIRS, seed, device))
    return acceptance(rounded(net), scene, pairs, labels, task.things, OVERALL)
