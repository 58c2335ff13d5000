"""The causal checks' labellings: a task's images and what decides there, and the gates before any map is read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from saliometer import registry
from saliometer.engine.device import exact
from saliometer.engine.memory import at_once
from saliometer.registry import Spec, one_of
from saliometer.sanity.gates import Gate, accuracy_gate, chance_gate, erasure_gates
from saliometer.seeds import fork
from saliometer.tasks import digits, half_digits, pairs, shape_digits
from saliometer.tasks._bank import SYNSETS, Bank, bank
from saliometer.types import PRIMARY, SECONDARY, Model, Samples

TASKS = {"digits": digits, "half_digits": half_digits, "shape_digits": shape_digits, "pairs": pairs}
IMAGENET = ("efficientnet_lite0", "torchvision:resnet18")
TESTED = 2000  # images that accuracy is measured on
BARS = {"digits": 0.985, "half_digits": 0.99, "shape_digits": 0.985}
CLASSES: dict[tuple[str, str], tuple[str, ...]] = {
    ("half_digits", "bottom"): ("whole", "half"),
    ("half_digits", "top"): ("whole", "half"),
    ("shape_digits", "shape"): ("nothing", "rectangle", "circle"),
}
LONE_CIRCLE = (
    "a circle without its digit looks like a 0, and a 0 without a shape is 'nothing': a network may miss this gate "
    "although it looks at circles, and most that never saw a dimmed digit do (docs/sanity.md)"
)
RESNET, PHOTOGRAPHS, TILES = (0.74, 0.80), 0.60, 0.95  # of pairs: the paper's network, others, and tiles of digits


@dataclass(frozen=True)
class Causal:
    """One labelling of one task's images; `seed` is that of the images, `side` enlarges a pair's tiles."""

    task: str
    setting: str
    source: str = "sklearn"
    seed: int = 0
    side: int = 0

    def __post_init__(self) -> None:
        one_of("causal task", self.task, TASKS)
        one_of(f"setting of {self.task}", self.setting, registry.tasks[self.task].facts.settings)
        if self.side and self.task != "pairs":
            raise ValueError(f"task '{self.task}' has no choice of side: leave out side={self.side}")

    @property
    def classes(self) -> int:
        return registry.tasks[self.task].classes(self.setting)

    @property
    def named(self) -> tuple[str, ...]:
        """The classes in words."""
        known = CLASSES.get((self.task, self.setting))
        every = tuple(SYNSETS.get(name, name) for name in self.bank("test").classes)
        first = self.classes * (self.setting == "second")
        return known or every[first : first + self.classes]

    @property
    def name(self) -> str:
        """As rows print it: `shape(source=sklearn)`."""
        params: dict[str, Any] = {"source": self.bank("test").name} | ({"side": self.side} if self.side else {})
        return str(Spec(self.setting, tuple(sorted(params.items()))))

    def bank(self, split: str, device: str = "cpu") -> Bank:
        return bank(self.source, split, device)

    def samples(
        self, split: str = "test", count: int = 1000, start: int = 0, device: str = "cpu", **more: float
    ) -> Samples:
        """Pixels in [0, 1]; `more` is what else the task takes, such as jitter."""
        which = self._which(split, count, start, device)
        made: Samples = registry.tasks[self.task].function(self.setting, **which, **more)
        return made

    def erased(self, role: int, split: str = "test", count: int = 1000, start: int = 0, device: str = "cpu") -> Tensor:
        """The same images without what decides (PRIMARY) or what distracts (SECONDARY)."""
        without: Tensor = TASKS[self.task].erased(self.setting, role, **self._which(split, count, start, device))
        return without

    def _which(self, split: str, count: int, start: int, device: str) -> dict[str, Any]:
        which: dict[str, Any] = {"split": split, "count": count, "start": start, "device": device}
        which |= {"source": self.source, "seed": self.seed}
        return which | ({"side": self.side} if self.task == "pairs" else {})

    def held_out(self) -> "Causal":
        """Another draw of test images than that of the maps; plain digits may be among both."""
        return replace(self, seed=fork("held out", self.seed))

    def told(self) -> dict[str, Any]:
        """What a card says of it."""
        held = self.bank("train")
        return {
            "task": TASKS[self.task].VERSION, "setting": self.setting, "source": held.name, "image_seed": self.seed,
            "side": self.side, "pictures": len(held.labels), "pictures_sha256": held.digest,
        }  # fmt: skip


def inputs(samples: Samples, model: Model) -> Samples:
    """The samples as a model takes them."""
    return replace(samples, batch=replace(samples.batch, images=scaled(samples.batch.images, model)))


def scaled(pixels: Tensor, model: Model) -> Tensor:
    if model.mean == (0.0,) and model.std == (1.0,):
        return pixels
    mean, std = (model.channels(pixels, values) for values in (model.mean, model.std))
    return (pixels - mean) / std


@torch.no_grad()
def right(model: Model, pixels: Tensor, labels: Tensor) -> Tensor:
    """(N,) bool: which images a model classifies as they are labelled."""

    def answers(part: Tensor) -> Tensor:
        return model.logits(scaled(part, model)).argmax(1)

    with exact():
        parts = [answers(part) for part in pixels.split(at_once(answers, pixels))]
    return torch.cat(parts) == labels


def bar(causal: Causal, arch: str, converged: bool = True) -> tuple[float, float]:
    """The least and the most accuracy that is asked of a network; most is 1 where training was not ended early."""
    if causal.task != "pairs":
        return BARS[causal.task], 1.0
    if Spec.parse(arch).name == "torchvision:resnet18":
        return RESNET[0], 1.0 if converged else RESNET[1]
    return (TILES if causal.bank("test").pixels.shape[1] == 1 else PHOTOGRAPHS), 1.0


def gates(
    causal: Causal, models: Sequence[Model], untrained: Sequence[Model], arch: str, *, count: int = TESTED,
    converged: bool = True, device: str = "cpu",
) -> list[Gate]:  # fmt: skip
    """Every gate of one labelling, on another draw of test images; not `converged`: training was ended early.

    Of half digits the whole ones are erased, as maps are read of those: a digit that lacks both halves shows nothing.
    """
    held = causal.held_out()
    samples = held.samples("test", count, device=device)
    pixels, labels = samples.batch.images, samples.labels
    whole = [right(model, pixels, labels) for model in models]
    chance = [right(model, pixels, labels) for model in untrained]
    found = [accuracy_gate(_shares(whole), *bar(causal, arch, converged))]
    found += [chance_gate(_shares(chance), causal.classes)] if chance else []
    shown = labels == 0 if causal.task == "half_digits" else torch.ones_like(labels, dtype=torch.bool)
    there = {role: shown & samples.region(role, "ink").flatten(1).any(1) for role in (PRIMARY, SECONDARY)}
    without: dict[int, list[Tensor]] = {}
    for role, some in there.items():
        bare = held.erased(role, "test", count, device=device)[some]
        without[role] = [right(model, bare, labels[some]) for model in models] if len(bare) else []
    intact = [one[there[SECONDARY]] for one in whole] if without[SECONDARY] else []
    bare_of = {role: _shares(some) for role, some in without.items()}
    *others, last = erasure_gates(_shares(intact), bare_of[PRIMARY], bare_of[SECONDARY], causal.classes)
    if intact and not last.passed:
        last = replace(last, note=_moved(causal, labels[there[SECONDARY]], intact, without[SECONDARY]))
    return [*found, *others, last]


def _moved(causal: Causal, labels: Tensor, intact: Sequence[Tensor], bare: Sequence[Tensor]) -> str:
    """By class, of the seed that moves most: how far accuracy moves when N is erased, the three that move most."""
    one, other = max(zip(intact, bare, strict=True), key=lambda both: abs(_share(both[0]) - _share(both[1])))
    there = {name: labels == k for k, name in enumerate(causal.named) if (labels == k).any()}
    by = {name: _share(other[some]) - _share(one[some]) for name, some in there.items()}
    most = sorted(by, key=lambda name: -abs(by[name]))[:3]
    said = f"by class {', '.join(f'{name} {by[name]:+.3f}' for name in most)}"
    return f"{said}; {LONE_CIRCLE}" if most[0] == "circle" else said


def _share(right: Tensor) -> float:
    return right.double().mean().item()


def _shares(right: Sequence[Tensor]) -> list[float]:
    """All from the device at once."""
    return torch.stack([one.double().mean() for one in right]).tolist() if right else []
