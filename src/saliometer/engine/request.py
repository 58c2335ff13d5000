"""What the ground-truth benchmark measures: settings, images, definitions; and its version in full."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.run import Unit, key
from saliometer.engine.tasks import Known
from saliometer.engine.tasks import known as known_task
from saliometer.maps import DEFINITIONS
from saliometer.registry import one_of
from saliometer.tasks._scene import SAMPLERS
from saliometer.tasks.textbox import LABELLINGS
from saliometer.types import Samples

REGIONS, TARGETS = ("box", "ink"), ("predicted", "label")
REFERENCES = 1000  # training images that methods may compare with
UNIT = 128  # samples that are computed and kept together


@dataclass(frozen=True)
class Request:
    """What is to be measured; methods can join a run later, the rest is settled when it starts."""

    settings: tuple[str, ...] = ()  # none stands for all
    per_bucket: int = 20
    limit: int = 0  # the most samples of a setting; 0 for all
    definitions: tuple[str, ...] = ("clean",)
    region: str = "box"
    target: str = "predicted"
    seed: int = 0
    sampler: str = "disjoint"
    labelling: str = "paper"
    condition: Condition = PLAIN
    model_seeds: tuple[int, ...] = ()  # of the models, all that there are by default
    task: str = "textbox"  # or a file

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.settings or self.known.settings)
        for name in ("settings", "definitions", "model_seeds"):  # asked for twice is asked for once
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        for kind, chosen, known in (
            ("setting", self.settings, self.known.settings),
            ("definition", self.definitions, DEFINITIONS),
            ("region", (self.region,), REGIONS),
            ("target", (self.target,), TARGETS),
            ("sampler", (self.sampler,), SAMPLERS),
            ("labelling", (self.labelling,), LABELLINGS),
        ):
            for name in chosen:
                one_of(kind, name, known)
            if not chosen:
                raise ValueError(f"no {kind} given: wanted one or more of {', '.join(known)}")
        self.known.check(self.sampler, self.labelling, self.condition)
        if self.per_bucket < 1 or self.limit < 0:
            raise ValueError(f"per-bucket is {self.per_bucket} and limit {self.limit}: wanted 1 or more, 0 or more")
        if self.region == "ink" and "authors" in self.definitions:
            raise ValueError("definition 'authors' exists for region 'box' only: the authors scored bounding boxes")

    @property
    def known(self) -> Known:
        """The task itself."""
        return known_task(self.task)

    def told(self) -> dict[str, Any]:
        """As a run keeps it: of task and models nothing that is as usual, so that earlier runs go on."""
        plain = {name: value for name, value in vars(self).items() if name not in ("condition", "model_seeds", "task")}
        plain |= {"task": self.known.name} if self.task != "textbox" else {}
        return plain | self.condition.told() | ({"model_seeds": self.model_seeds} if self.model_seeds else {})

    def models(self, setting: str, folder: Path) -> dict[str, str]:
        """Which of the setting's models -> the name of its files; the first is ''."""
        found = self.known.found(setting, folder, self.condition)
        lacking = [seed for seed in self.model_seeds if seed not in found]
        if lacking:
            there = ", ".join(map(str, found))
            raise ValueError(f"'{folder}' holds no model of {setting} with seed {lacking[0]}; there are: {there}")
        seeds = [seed for seed in found if not self.model_seeds or seed in self.model_seeds]
        return {f"seed{seed}" if place else "": found[seed] for place, seed in enumerate(seeds)}

    def count(self, setting: str) -> int:
        whole = self.per_bucket * len(self.known.cycle(setting, "test"))
        return min(whole, self.limit) if self.limit else whole

    def units(self, setting: str, model: str = "") -> list[Unit]:
        count = self.count(setting)
        return [Unit(setting, start, min(start + UNIT, count), model) for start in range(0, count, UNIT)]

    def samples(self, unit: Unit, device: torch.device | str = "cpu") -> Samples:
        return self._drawn(unit.setting, device, start=unit.start, count=unit.stop - unit.start)

    def references(self, setting: str, device: torch.device | str = "cpu") -> Tensor:
        """(R, C, H, W): training images, for methods that compare with them."""
        return self._drawn(setting, device, split="train", count=REFERENCES).batch.images

    def _drawn(self, setting: str, device: torch.device | str, **which: Any) -> Samples:
        chosen = {"sampler": self.sampler, "labelling": self.labelling, "background": self.condition.background}
        options = {name: value for name, value in chosen.items() if name in self.known.options}
        return self.known.samples(setting, seed=self.seed, device=str(device), **options, **which)


def fixed(request: Request, weights: Path | None = None) -> dict[str, Any]:
    """What the request meets: the benchmark's version in full. Without `weights`, models are trained for the run."""
    task = request.known
    models = dict.fromkeys(request.settings, "retrained")
    if weights:
        stems = {stem: s for s in request.settings for stem in request.models(s, weights).values()}
        models = {stem: task.card(setting, weights, stem)["sha256"] for stem, setting in stems.items()}
    met = {"task": task.version, "sampler": request.sampler, **task.fixed, "weights": models, "unit": UNIT}
    return met | request.condition.behind()


def default_folder(request: Request, met: dict[str, Any]) -> Path:
    """Depends on what is measured but not on the methods, so that a new method finds the others done."""
    name = re.sub(r"[^A-Za-z0-9_=-]+", "-", request.known.name).strip("-")
    return Path("runs") / f"{name}-{key(request.told(), met)[:8]}"
