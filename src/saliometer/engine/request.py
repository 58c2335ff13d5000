"""What the ground-truth benchmark measures: settings, images, definitions; and its version in full."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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
    task: str = "textbox"  # or a file

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.settings or self.known.settings)
        for name in ("settings", "definitions"):  # asked for twice is asked for once
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
        for name, usual in (("sampler", "disjoint"), ("labelling", "paper")):
            if name not in self.known.options and getattr(self, name) != usual:
                raise ValueError(f"task '{self.task}' has no {name}: leave out --{name} {getattr(self, name)}")
        if self.per_bucket < 1 or self.limit < 0:
            raise ValueError(f"per-bucket is {self.per_bucket} and limit {self.limit}: wanted 1 or more, 0 or more")
        if self.region == "ink" and "authors" in self.definitions:
            raise ValueError("definition 'authors' exists for region 'box' only: the authors scored bounding boxes")

    @property
    def known(self) -> Known:
        """The task itself."""
        return known_task(self.task)

    def count(self, setting: str) -> int:
        whole = self.per_bucket * len(self.known.cycle(setting, "test"))
        return min(whole, self.limit) if self.limit else whole

    def units(self, setting: str) -> list[Unit]:
        count = self.count(setting)
        return [Unit(setting, start, min(start + UNIT, count)) for start in range(0, count, UNIT)]

    def samples(self, unit: Unit, device: torch.device | str = "cpu") -> Samples:
        return self._drawn(unit.setting, device, start=unit.start, count=unit.stop - unit.start)

    def references(self, setting: str, device: torch.device | str = "cpu") -> Tensor:
        """(R, C, H, W): training images, for methods that compare with them."""
        return self._drawn(setting, device, split="train", count=REFERENCES).batch.images

    def _drawn(self, setting: str, device: torch.device | str, **which: Any) -> Samples:
        options = {name: getattr(self, name) for name in self.known.options}
        return self.known.samples(setting, seed=self.seed, device=str(device), **options, **which)


def fixed(request: Request, weights: Path | None = None) -> dict[str, Any]:
    """What the request meets: the benchmark's version in full. Without `weights`, models are trained for the run."""
    task = request.known
    return {
        "task": task.version,
        "sampler": request.sampler,
        **task.fixed,
        "weights": {s: task.card(s, weights)["sha256"] if weights else "retrained" for s in request.settings},
        "unit": UNIT,
    }


def default_folder(request: Request, met: dict[str, Any]) -> Path:
    """Depends on what is measured but not on the methods, so that a new method finds the others done."""
    return Path("runs") / f"{request.known.name}-{key(vars(request), met)[:8]}"
