"""What the ground-truth benchmark measures: settings, images, definitions; and its version in full."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saliometer.engine import shipped
from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.run import Unit, key
from saliometer.maps import DEFINITIONS
from saliometer.registry import one_of
from saliometer.tasks._glyphs import glyphs
from saliometer.tasks._scene import SAMPLERS
from saliometer.tasks.textbox import LABELLINGS, SETTINGS, VERSION, cycle, textbox
from saliometer.types import Samples

TASK = "textbox"
REGIONS, TARGETS = ("box", "ink"), ("predicted", "label")
REFERENCES = 1000  # training images that methods may compare with
UNIT = 128  # samples that are computed and kept together


@dataclass(frozen=True)
class Request:
    """What is to be measured; methods can join a run later, the rest is settled when it starts."""

    settings: tuple[str, ...] = SETTINGS
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

    def __post_init__(self) -> None:
        for name in ("settings", "definitions", "model_seeds"):  # asked for twice is asked for once
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))
        for kind, chosen, known in (
            ("setting", self.settings, SETTINGS),
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
        if self.per_bucket < 1 or self.limit < 0:
            raise ValueError(f"per-bucket is {self.per_bucket} and limit {self.limit}: wanted 1 or more, 0 or more")
        if self.region == "ink" and "authors" in self.definitions:
            raise ValueError("definition 'authors' exists for region 'box' only: the authors scored bounding boxes")

    def told(self) -> dict[str, Any]:
        """As a run keeps it: of the models nothing that is as usual, so that earlier runs go on."""
        plain = {name: value for name, value in vars(self).items() if name not in ("condition", "model_seeds")}
        return plain | self.condition.told() | ({"model_seeds": self.model_seeds} if self.model_seeds else {})

    def models(self, setting: str, folder: Path) -> dict[str, str]:
        """Which of the setting's models -> the name of its files; the first is ''."""
        found = shipped.found(setting, folder, self.condition)
        lacking = [seed for seed in self.model_seeds if seed not in found]
        if lacking:
            there = ", ".join(map(str, found))
            raise ValueError(f"'{folder}' holds no model of {setting} with seed {lacking[0]}; there are: {there}")
        seeds = [seed for seed in found if not self.model_seeds or seed in self.model_seeds]
        return {f"seed{seed}" if place else "": found[seed] for place, seed in enumerate(seeds)}

    def count(self, setting: str) -> int:
        whole = self.per_bucket * len(cycle(setting, "test"))
        return min(whole, self.limit) if self.limit else whole

    def units(self, setting: str, model: str = "") -> list[Unit]:
        count = self.count(setting)
        return [Unit(setting, start, min(start + UNIT, count), model) for start in range(0, count, UNIT)]

    def samples(self, unit: Unit, device: torch.device | str = "cpu") -> Samples:
        return textbox(
            unit.setting,
            start=unit.start,
            count=unit.stop - unit.start,
            seed=self.seed,
            sampler=self.sampler,
            labelling=self.labelling,
            background=self.condition.background,
            device=str(device),
        )

    def references(self, setting: str, device: torch.device | str = "cpu") -> Tensor:
        """(R, C, H, W): training images, for methods that compare with them."""
        return textbox(
            setting, split="train", count=REFERENCES, seed=self.seed, sampler=self.sampler, labelling=self.labelling,
            background=self.condition.background, device=str(device),
        ).batch.images  # fmt: skip


def fixed(request: Request, weights: Path | None = None) -> dict[str, Any]:
    """What the request meets: the benchmark's version in full. Without `weights`, models are trained for the run."""
    met = {"task": VERSION, "sampler": request.sampler, "glyphs": key(glyphs().tolist())[:16]}
    models = dict.fromkeys(request.settings, "retrained")
    if weights:
        stems = {stem: s for s in request.settings for stem in request.models(s, weights).values()}
        models = {stem: shipped.card(setting, weights, stem)["sha256"] for stem, setting in stems.items()}
    return met | {"weights": models, "unit": UNIT} | request.condition.behind()


def default_folder(request: Request, met: dict[str, Any]) -> Path:
    """Depends on what is measured but not on the methods, so that a new method finds the others done."""
    return Path("runs") / f"{TASK}-{key(request.told(), met)[:8]}"
