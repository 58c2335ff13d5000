"""The study's models: trained on each labelling, on labels in disorder, pretrained, random; and who is shown what."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saliometer.engine import causal as labellings
from saliometer.engine.causal import Causal
from saliometer.engine.causal_models import Training, pretrained, trained, untrained
from saliometer.engine.run import key
from saliometer.files import put
from saliometer.registry import Spec
from saliometer.sanity.effect import posterior
from saliometer.sanity.gates import Gate, memory_gate
from saliometer.studies._yona_evidence import TASKS
from saliometer.studies._yona_scenes import Comparison, Group, Scene, spread
from saliometer.tasks import half_digits, pairs, shape_digits
from saliometer.types import ABSENT, Batch, Model, Samples, Watch

TRAINED = ("t", "half", "labels", "t1", "t2", "pairs", "pairs2")  # groups of models
SIDE = pairs.GROUP**2  # pairs in a row that have the first group on the same side
STRIDE = 7  # through them, so that few have all classes of both groups


@dataclass(frozen=True)
class Sizes:
    """How many models and images, and how models are trained."""

    seeds: int
    draws: int
    images: int
    beside: int  # images of secondary distances, AUROC and pointing
    tested: int  # images that the gates are measured on
    training: Mapping[str, Training]  # by task; 'labels' for labels in disorder


class Casting:
    """Trains or loads what a scene needs; what `folder` holds is not trained again."""

    def __init__(self, folder: Path, device: str, seed: int, watch: Watch, timed: Callable[[str], Any]) -> None:
        self.folder, self.device, self.seed, self.watch, self.timed = folder, device, seed, watch, timed
        self.gates: dict[str, list[Gate]] = {}
        self.cards: dict[str, list[dict[str, Any]]] = {}

    def labelling(self, task: str, source: str, side: int = 0) -> Causal:
        name, setting = TASKS[task]
        return Causal(name, setting, source, self.seed, **({"side": side} if side else {}))

    def learned(self, group: str, source: str, side: int = 0) -> Causal:
        """What a group learned, be it labels in disorder."""
        return self.labelling("t" if group == "labels" else group, source, side)

    def seeds(self, group: str, sizes: Sizes) -> range:
        """Groups of one labelling would start from the same weights, and must not be alike for that."""
        first = sizes.seeds * (group == "labels")
        return range(first, first + sizes.seeds)

    def training(self, group: str, sizes: Sizes) -> Training:
        return replace(sizes.training[group], tested=sizes.tested)

    def trained(self, group: str, causal: Causal, sizes: Sizes) -> list[Model]:
        training, before = self.training(group, sizes), len(self.cards)

        def told(share: float, text: str) -> None:
            self.watch((before + share) / len(TRAINED), f"training {text}")

        with self.timed(f"training {group}"):
            found = trained(
                causal, self.seeds(group, sizes), self.folder, training, device=self.device, watch=told
            )  # fmt: skip
        self.cards[group] = [one.card for one in found]
        return [one.model for one in found]

    def random(self, causal: Causal, sizes: Sizes, training: Training) -> list[Model]:
        return untrained(causal, range(sizes.draws), training, self.device)

    def checked(
        self, task: str, causal: Causal, models: Sequence[Model], random: Sequence[Model], sizes: Sizes
    ) -> None:  # fmt: skip
        """The gates of a task, found once for these models."""
        path, training = self.folder / f"gates-{task}.json", sizes.training[task]
        mark = key([model.fingerprint for model in (*models, *random)], training.arch, sizes.tested, causal.told())
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        if kept.get("models") != mark:
            with self.timed(f"gates {task}"):
                found = labellings.gates(
                    causal, models, random, training.arch, count=sizes.tested, converged=not training.until,
                    device=self.device,
                )  # fmt: skip
            kept = {"models": mark, "gates": [asdict(gate) for gate in found]}
            put(path, (json.dumps(kept, indent=1) + "\n").encode())
        self.gates[task] = [Gate(**gate) for gate in kept["gates"]]


def digits_scene(casting: Casting, source: str, sizes: Sizes) -> Scene:
    """Intact digits, for models that name them, tell whether half is missing, or learned labels by heart."""
    natural, half = (casting.labelling(task, source) for task in ("t", "half"))
    models = {"t": casting.trained("t", natural, sizes), "half": casting.trained("half", half, sizes)}
    models["labels"] = casting.trained("labels", natural, sizes)
    casting.gates["labels"] = [memory_gate([card["train_accuracy"] for card in casting.cards["labels"]])]
    models["random"] = casting.random(natural, sizes, sizes.training["t"])
    models["random.half"] = casting.random(half, sizes, sizes.training["half"])
    casting.checked("t", natural, models["t"], models["random"], sizes)
    casting.checked("half", half, models["half"], models["random.half"], sizes)
    plain = natural.samples("test", sizes.images, device=casting.device)
    other = half.samples("test", sizes.images, device=casting.device)
    intact = replace(other, batch=plain.batch, labels=torch.zeros_like(other.labels))
    weights = posterior({"t": 1.0, "half": half_digits.CHANCE})
    return Scene(
        "digits", {"t": plain, "half": intact},
        {name: Group(some, name if name in ("t", "half") else "") for name, some in models.items()},
        [
            Comparison("t", "t", "random"), Comparison("half", "half", "random.half"), Comparison("t", "t", "labels"),
            Comparison("t", "labels", "random"),
        ],
        {"half": ("half", "random.half", "t", "labels")}, [(weights, "random", None)],
        shown=spread(sizes.images, 5),
    )  # fmt: skip


def shapes_scene(casting: Casting, source: str, sizes: Sizes, natural: Sequence[Model]) -> Scene:
    """Digits with and without a shape, for models that name either; those of the natural task see plain ones."""
    one, other = (casting.labelling(task, source) for task in ("t1", "t2"))
    models = {"t1": casting.trained("t1", one, sizes), "t2": casting.trained("t2", other, sizes)}
    models["random"] = casting.random(one, sizes, sizes.training["t1"])
    models["random.t2"] = casting.random(other, sizes, sizes.training["t2"])
    casting.checked("t1", one, models["t1"], models["random"], sizes)
    casting.checked("t2", other, models["t2"], models["random.t2"], sizes)
    samples = one.samples("test", sizes.images, device=casting.device)
    shaped = (samples.roles != ABSENT).all(1)
    plain, there = (~shaped).nonzero()[:, 0], shaped.nonzero()[:, 0]
    chance = shape_digits.CHANCE
    groups = {name: Group(some, name if name in ("t1", "t2") else "") for name, some in models.items()}
    return Scene(
        "shapes", {"t1": samples, "t2": shape_digits.seen_as(samples, "digit")},
        {**groups, "t": Group(natural, "t2", plain)},  # it names digits as t2 does
        [
            Comparison("t1", "t1", "random"), Comparison("t2", "t2", "random.t2"), Comparison("t1", "t1", "t2"),
        ],
        {"t1": ("t1", "random", "t2"), "t2": ("t2", "random.t2", "t1")},
        [
            (posterior({"t1": chance, "t2": chance}), "random", there),
            (posterior({"t": 1.0, "t1": chance, "t2": chance}), "random", plain),
        ],
        shown=_both_shapes(samples.labels),
    )  # fmt: skip


def _both_shapes(kinds: Tensor) -> tuple[int, ...]:
    """Six images of different digits, with a rectangle and with a circle in turn."""
    rectangles, circles = ((kinds == kind).nonzero()[:, 0] for kind in (shape_digits.RECTANGLE, shape_digits.CIRCLE))
    circles = circles[5:]  # from another digit on
    several = [some[list(spread(len(some), 3))].tolist() for some in (rectangles, circles)]
    return tuple(place for both in zip(*several, strict=False) for place in both)


def pairs_scene(casting: Casting, source: str, sizes: Sizes, side: int) -> Scene:
    """Two pictures side by side, for models that name either; published weights, where there are any, besides.

    All explain the label. The classes of an untrained head are exchangeable, so random models explain that of the first
    group for both tasks.
    """
    one, other = (casting.labelling(task, source, side) for task in ("pairs", "pairs2"))
    training = sizes.training["pairs"]
    models = {"pairs": casting.trained("pairs", one, sizes), "pairs2": casting.trained("pairs2", other, sizes)}
    if Spec.parse(training.arch).name in labellings.IMAGENET:
        models["pretrained"] = pretrained(one, range(sizes.seeds), training, casting.device)
    models["random"] = casting.random(one, sizes, training)
    for task, labelling in (("pairs", one), ("pairs2", other)):
        casting.checked(task, labelling, models[task], models["random"], sizes)
    samples = labellings.inputs(both_sides(one, sizes.images, casting.device), models["pairs"][0])
    groups = {name: Group(some, name if name in ("pairs", "pairs2") else "") for name, some in models.items()}
    more = [group for group in ("pretrained",) if group in models]
    return Scene(
        "pairs", {"pairs": samples, "pairs2": pairs.seen_as(samples, other.setting)}, groups,
        [
            Comparison("pairs", "pairs", "random"), Comparison("pairs2", "pairs2", "random"),
            Comparison("pairs", "pairs", "pairs2"),
            *(Comparison("pairs", "pairs", group) for group in more),
            *(Comparison("pairs", group, "random") for group in more),
        ],
        {"pairs": ("pairs", "random", "pairs2", *more), "pairs2": ("pairs2", "random", "pairs", *more)},
        [(posterior({"pairs": 1.0, "pairs2": 1.0}), "random", None)],
        target="label", shown=spread(sizes.images, 8),
    )  # fmt: skip


def both_sides(causal: Causal, count: int, device: str = "cpu") -> Samples:
    """So many pairs, the first group as often on the left as on the right from the first few on (l, r, r, l, ...).

    In the task's own order it is on one side 25 times running: of few pairs all would have what decides on the left.
    """
    rounds = -(-count // (2 * SIDE))
    samples = causal.samples("test", 2 * SIDE * rounds, device=device)
    mixed = STRIDE * torch.arange(SIDE) % SIDE
    left = (2 * SIDE * torch.arange(rounds)[:, None] + mixed).flatten()
    both = torch.stack((left, left + SIDE), 1)
    both[1::2] = both[1::2].flip(1)
    return _some(samples, both.flatten()[:count])


def _some(samples: Samples, places: Tensor) -> Samples:
    numbers, at = places.tolist(), places.to(samples.labels.device)
    batch = Batch(samples.batch.images[at], samples.batch.targets[at], samples.batch.seeds[at])
    ids, buckets = (tuple(some[number] for number in numbers) for some in (samples.ids, samples.buckets))
    return Samples(
        batch, ids, samples.labels[at], samples.objects[at], samples.boxes[at], samples.roles[at], buckets
    )  # fmt: skip


def named_classes(casting: Casting, digits: str, photos: str) -> dict[str, tuple[str, ...]]:
    """The names of classes by task, for pictures."""
    return {task: casting.labelling(task, photos if task.startswith("pairs") else digits).named for task in TASKS}


def targets(scene: Scene, predicted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """group -> (models, images): the class that each map explains."""
    if scene.target == "own":
        return dict(predicted)
    return {name: scene.labels(name).expand(len(group.models), -1) for name, group in scene.groups.items()}
