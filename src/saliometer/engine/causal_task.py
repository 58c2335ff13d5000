"""What `bench` and `train` know of a causal task: its images, and the networks of it that a folder holds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saliometer import registry
from saliometer.engine.causal import TASKS, Causal
from saliometer.engine.causal_models import FAINTEST, FULL, Training, load, stem, trained
from saliometer.engine.condition import Condition
from saliometer.registry import Spec
from saliometer.tasks._bank import bank
from saliometer.types import Model, Samples, Watch

ROUND = {"digits": 10, "half_digits": 20, "shape_digits": 30, "pairs": 50}  # buckets, in the order of images
OBJECTS = {
    "digits": ("digit",), "half_digits": ("top half", "bottom half"), "shape_digits": ("digit", "shape"),
    "pairs": ("tile of the first group", "tile of the second group"),
}  # fmt: skip
RULES = {
    "digits": {"digit": "which digit is it?"},
    "half_digits": {half: f"is the {half} half there (0) or deleted (1)?" for half in ("bottom", "top")},
    "shape_digits": {"shape": "nothing (0), a rectangle (1) or a circle (2)?", "digit": "which digit is it?"},
    "pairs": {"first": "which class of the first five?", "second": "which class of the second five?"},
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class CausalTask:
    """One task over one source of pictures: `shape_digits`, `pairs(source='photos.zip')`."""

    task: str
    source: str = "sklearn"

    @classmethod
    def of(cls, text: str) -> "CausalTask":
        spec = Spec.parse(text)
        spec.check("task", registry.tasks[spec.name])
        params = dict(spec.params)
        other = [key for key in params if key != "source"]
        if other:
            raise ValueError(f"task '{spec}': only source can be chosen here, leave out {other[0]}")
        return cls(spec.name, str(params.get("source", "sklearn")))

    @property
    def name(self) -> str:
        """As rows print it; scikit-learn's digits go without saying."""
        held = bank(self.source, "test").name
        return self.task if self.source == "sklearn" else str(Spec(self.task, (("source", held),)))

    def fixed(self) -> dict[str, Any]:
        return {"source": bank(self.source, "test").name, "pictures_sha256": bank(self.source, "test").digest}

    def cycle(self, setting: str, split: str) -> tuple[int, ...]:
        return tuple(range(1, ROUND[self.task] + 1))

    def samples(self, setting: str, **which: Any) -> Samples:
        made: Samples = registry.tasks[self.task].function(setting, source=self.source, **which)
        return made

    def words(self) -> Mapping[str, Any]:
        buckets = {str(number): self._called(number - 1) for number in self.cycle("", "")}
        return {"objects": list(OBJECTS[self.task]), "buckets": buckets, "settings": RULES[self.task]}

    def _called(self, number: int) -> str:
        classes = bank(self.source, "test").classes
        if self.task == "pairs":
            one, other = classes[number % 5], classes[5 + number // 5 % 5]
            return f"{other} and {one}" if number // 25 else f"{one} and {other}"
        more = {"half_digits": ("", ", half deleted"), "shape_digits": ("", " and a rectangle", " and a circle")}
        return classes[number % 10] + more.get(self.task, ("",))[number // 10]

    def causal(self, setting: str) -> Causal:
        return Causal(self.task, setting, self.source)

    def training(self, condition: Condition) -> Training:
        return replace(FULL, arch=condition.arch or FULL.arch)

    def stem(self, setting: str, condition: Condition, seed: int) -> str:
        return stem(self.causal(setting), seed, self.training(condition))

    def found(self, setting: str, folder: Path, condition: Condition) -> dict[int, str]:
        """seed -> the name of its files, for every network of a setting that a folder holds."""
        causal, stems = self.causal(setting), dict[int, str]()
        told, arch = causal.told(), self.training(condition).arch
        for path in sorted(folder.glob(f"{self.task}-{setting}.*.json")):
            card = _read(path)
            if card.get("model") == arch and not card.get("shuffled"):
                other = [name for name, value in told.items() if card.get(name) != value]
                if other:
                    raise ValueError(
                        f"'{path}' is of {other[0]}={card.get(other[0])}, wanted {told[other[0]]}: train it anew with "
                        f"{self._command(setting)}"
                    )
                stems[card["seed"]] = path.stem
        if not stems:
            raise ValueError(f"no model of {setting} ({arch}) in '{folder}': train one with {self._command(setting)}")
        return dict(sorted(stems.items()))

    def card(self, setting: str, folder: Path, stem: str) -> dict[str, Any]:
        return _read(folder / f"{stem}.json")

    def load(self, setting: str, folder: Path, stem: str) -> Model:
        path = folder / f"{stem}.safetensors"
        return load(self.causal(setting), path, self.card(setting, folder, stem)).model

    def train(
        self, setting: str, out: Path, *, condition: Condition, seed: int = 0, device: str = "cpu",
        watch: Watch = lambda share, text: None, epochs: int = 0, batch: int | None = None, rate: float | None = None,
        limit: int = 0, loss: str = "cross_entropy", weights: Path | None = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """One seed's network and its card; it is trained once, for another draw is another seed."""
        if loss != "cross_entropy" or weights:
            raise ValueError(
                f"task '{self.task}' is trained by cross_entropy from scratch: leave out --loss and --weights"
            )
        if epochs < 0 or limit < 0 or (batch is not None and batch < 1) or (rate is not None and not rate > 0):
            raise ValueError(
                f"epochs {epochs}, limit {limit}, batch {batch}, rate {rate}: wanted twice 0 or more (0: the usual), 1 "
                "or more, and more than 0"
            )
        usual = self.training(condition)
        recipe = replace(
            usual.recipe, epochs=epochs or usual.recipe.epochs, batch=batch or usual.recipe.batch,
            rate=rate or usual.recipe.rate,
        )  # fmt: skip
        faintest = FAINTEST if (self.task, setting) == ("shape_digits", "shape") else usual.faintest
        training = replace(usual, recipe=recipe, images=limit or usual.images, faintest=faintest)
        return trained(self.causal(setting), [seed], out, training, device=device, watch=watch)[0].card

    def _command(self, setting: str) -> str:
        task = self.task if self.source == "sklearn" else f'"{Spec(self.task, (("source", self.source),))}"'
        return f"`saliometer train {task} --setting {setting}`"


def is_causal(text: str) -> bool:
    """Whether a task's name, with parameters or not, is of one of these."""
    return text.partition("(")[0].strip() in TASKS


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())  # type: ignore[no-any-return]
    except (OSError, ValueError) as error:
        raise ValueError(f"no readable card '{path}' ({error}): train the model with `saliometer train`") from error
