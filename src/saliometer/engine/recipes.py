"""How a classifier of images is trained: the recipes of the COSE paper's code, and our own."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from saliometer.registry import one_of

ADAM, ADAMW, SGD = "adam", "adamw", "sgd"
COSINE, PLATEAU = "cosine", "plateau"
PATIENCE, FACTOR = 2, 1e-5  # of the plateau: the first one as good as ends the training


@dataclass(frozen=True)
class ImageRecipe:
    """Every choice that a training depends on, beside the data, the network and the seed."""

    name: str
    epochs: int
    batch: int
    optimiser: str
    rate: float
    decay: float = 0.0
    momentum: float = 0.0
    schedule: str = COSINE  # or plateau, of the loss on test images
    warmup: float = 0.0  # share of the steps in which the rate rises
    clip: float = 0.0  # where gradients are cut off, value by value; 0 for nowhere
    smoothing: float = 0.0  # of labels
    hidden: tuple[int, ...] = ()  # layers of a new head before its last
    frozen: bool = False  # only the head learns; the rest is in train mode nevertheless, as in the paper's code
    jitter: bool = False  # images are also moved a little and mirrored


def _papers(
    name: str, epochs: int, optimiser: str, rate: float, decay: float, *hidden: int, **more: float
) -> ImageRecipe:
    frozen = optimiser == ADAM
    found = ImageRecipe(
        name, epochs, 32, optimiser, rate, decay, schedule=PLATEAU, clip=0.1, hidden=hidden, frozen=frozen
    )
    return replace(found, **more)  # type: ignore[arg-type]


PAPER = {
    one.name: one
    for one in (
        _papers("caltech101", 20, ADAM, 1e-4, 0.0, 1024),
        _papers("cifar10", 20, ADAM, 8e-4, 1e-3, 1024, 256),
        _papers("eurosat", 10, ADAM, 1e-4, 1e-3, 256),
        _papers("oxford102", 30, ADAM, 8e-4, 1e-3, 1024, clip=0.0),
        _papers("cub200", 100, SGD, 1e-3, 1e-4, momentum=0.85),
    )
}
EXCEPT: dict[tuple[str, str, str], dict[str, float]] = {  # (recipe, where weights come from, network): what is other
    ("caltech101", "spark", "convnext_small"): {"epochs": 40},
    ("oxford102", "spark", "convnext_small"): {"epochs": 100, "rate": 1e-3, "clip": 0.1},
    ("cub200", "dino", "resnet50"): {"epochs": 200},
    ("cub200", "ibot", "swin_t"): {"frozen": True},
}
OURS = "ours"


def recipe_for(name: str, arch: str, origin: str) -> ImageRecipe:
    """The recipe of that name ('' or 'ours': our own) for a network whose first weights come from `origin`."""
    if name in ("", OURS):
        return _ours(arch, origin)
    found = PAPER[one_of("recipe", name, [OURS, *PAPER])]
    return replace(found, **EXCEPT.get((name, origin, arch), {}))  # type: ignore[arg-type]


def _ours(arch: str, origin: str) -> ImageRecipe:
    """From random weights long and high, with more to learn from; from trained ones short and low."""
    resnet = arch.startswith("resnet")
    if origin != "random":
        tuned = ImageRecipe(OURS, 20, 64, ADAMW, 1e-4, 0.05, warmup=0.05)
        return replace(tuned, optimiser=SGD, rate=1e-2, decay=1e-4, momentum=0.9) if resnet else tuned
    if resnet:
        return ImageRecipe(OURS, 60, 128, SGD, 0.1, 5e-4, 0.9, warmup=0.05, jitter=True)
    return ImageRecipe(OURS, 60, 256, ADAMW, 1e-3, 0.05, warmup=0.1, smoothing=0.1, jitter=True)


def optimiser_of(net: nn.Module, recipe: ImageRecipe) -> torch.optim.Optimizer:
    """AdamW leaves scales, offsets and positions out of its decay; the others take all, as the paper's code does."""
    learning = {name: values for name, values in net.named_parameters() if values.requires_grad}
    fused = all(values.is_cuda for values in learning.values())
    if recipe.optimiser == SGD:
        return torch.optim.SGD(learning.values(), recipe.rate, recipe.momentum, weight_decay=recipe.decay, fused=fused)
    if recipe.optimiser == ADAM:
        return torch.optim.Adam(learning.values(), recipe.rate, weight_decay=recipe.decay, fused=fused)
    kept = [v for name, v in learning.items() if v.ndim < 2 or name.endswith(("pos_embedding", "class_token", "table"))]
    others = [values for values in learning.values() if not any(values is one for one in kept)]
    groups = [{"params": others, "weight_decay": recipe.decay}, {"params": kept, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], recipe.rate, fused=fused)


def schedule_of(
    optimiser: torch.optim.Optimizer, recipe: ImageRecipe, steps: int
) -> torch.optim.lr_scheduler.LambdaLR | None:
    """From 0 up to the rate, then down to 0 along a cosine; none where a plateau decides."""
    if recipe.schedule == PLATEAU:
        return None
    return torch.optim.lr_scheduler.LambdaLR(optimiser, share_of_rate(recipe.warmup, steps))


def share_of_rate(warmup: float, steps: int) -> Callable[[int], float]:
    rising = round(warmup * steps)

    def share(step: int) -> float:
        if step < rising:
            return (step + 1) / rising
        done = min(1.0, (step - rising) / max(1, steps - rising))
        return 0.5 * (1 + math.cos(math.pi * done))

    return share


def plateau_of(
    optimiser: torch.optim.Optimizer, recipe: ImageRecipe
) -> torch.optim.lr_scheduler.ReduceLROnPlateau | None:
    if recipe.schedule != PLATEAU:
        return None
    return torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=FACTOR, patience=PATIENCE)
