"""A task as the engine sees it: ours by name, or one of the user's from a file."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from saliometer import registry
from saliometer.engine import handmade, robust, shipped, train_own
from saliometer.engine.causal import TASKS as CAUSAL
from saliometer.engine.causal_task import CausalTask, is_causal
from saliometer.engine.condition import Condition
from saliometer.engine.own import from_file
from saliometer.engine.run import key
from saliometer.engine.trained import Trained
from saliometer.registry import one_of
from saliometer.tasks import Task, textbox
from saliometer.tasks import handmade as handmade_task
from saliometer.tasks._glyphs import glyphs
from saliometer.types import Model, Samples

OURS = ("textbox", "handmade", *CAUSAL)
MODELS = Path("runs") / "models"  # where `train` writes unless told otherwise


@dataclass(frozen=True, eq=False)
class Known:
    """What is measured on: images with their truth, and models whose reasoning is known."""

    name: str  # what rows call it
    version: str
    settings: tuple[str, ...]
    cycle: Callable[[str, str], tuple[int, ...]]  # (setting, split) -> the buckets a stream goes round in
    samples: Callable[..., Samples]
    found: Callable[[str, Path, Condition], dict[int, str]]  # (setting, folder) -> seed -> the name of its files
    load: Callable[[str, Path, str], Model]  # (setting, folder, name of files)
    card: Callable[[str, Path, str], dict[str, Any]]
    shelf: Path  # where its models lie unless told otherwise
    options: tuple[str, ...] = ()  # of a request, that its samples take
    fixed: Mapping[str, Any] = field(default_factory=dict)  # what else decides its images
    words: Mapping[str, Any] = field(default_factory=dict)  # for a report, where it has none of its own
    task: Task | None = None  # what it is made of, where that is not TextBox
    train: Callable[..., dict[str, Any]] | None = None  # (setting, folder, ...) -> a card; none where weights are given
    stem: Callable[[str, Condition, int], str] = lambda setting, condition, seed: setting  # how files are named

    def check(self, sampler: str, labelling: str, condition: Condition) -> None:
        """Raise where something is asked of it that only TextBox has."""
        usual = {"sampler": "disjoint", "labelling": "paper", "background": "black", "robust": False}
        asked = {"sampler": sampler, "labelling": labelling, **vars(condition)}
        if self.train is None:
            usual["arch"] = ""
        for name, value in usual.items():
            if name not in self.options and asked[name] != value:
                raise ValueError(f"task '{self.name}' has no choice of {name}: leave out --{name} {asked[name]}")


def known(name: str) -> Known:
    """The task of that name, maybe with a source of pictures, or the one that a file `my_task.py` calls TASK."""
    if name.endswith(".py"):
        return _own(name, _digest(name))  # read again when the file changes
    if is_causal(name):
        return _causal(name)
    return _ours(one_of("task", name, OURS))


@lru_cache
def _ours(name: str) -> Known:
    if name == "handmade":
        made = handmade_task.TASK
        return _of(made, handmade, Path(), made.version)
    return Known(
        "textbox", textbox.VERSION, textbox.SETTINGS, textbox.cycle, textbox.textbox, shipped.found, shipped.load,
        shipped.card, shipped.FOLDER, ("sampler", "labelling", "background", "robust"),
        {"glyphs": key(glyphs().tolist())[:16]}, train=robust.trained,
        stem=lambda setting, condition, seed: condition.stem(setting, seed),
    )  # fmt: skip


@lru_cache
def _causal(text: str) -> Known:
    made = CausalTask.of(text)
    entry = registry.tasks[made.task]
    return Known(
        made.name, CAUSAL[made.task].VERSION, entry.facts.settings, made.cycle, made.samples, made.found, made.load,
        made.card, MODELS, fixed=made.fixed(), words=made.words(), train=made.train, stem=made.stem,
    )  # fmt: skip


@lru_cache
def _own(path: str, digest: str) -> Known:
    task = getattr(_imported(path), "TASK", None)
    if not isinstance(task, Task):
        came = "none" if task is None else type(task).__name__
        raise ValueError(f"task '{path}': wanted a file that says TASK = Task(...), its TASK is {came}")
    if task.name in OURS:
        raise ValueError(f"task '{path}' is named '{task.name}' like one of ours: give it another name")
    version = key(*(task.digest(setting) for setting in task.settings))[:12]
    found = _of(task, Trained(task, path), MODELS / task.name, f"{task.name} {version}")
    stem = lambda setting, condition, seed: train_own.stem(setting, condition.arch, seed)  # noqa: E731
    return replace(found, train=partial(_train_own, task), stem=stem)


def _train_own(task: Task, setting: str, out: Path, **params: Any) -> dict[str, Any]:
    """As TextBox's models are trained, less what only those have."""
    if params.pop("weights", None):
        raise ValueError("--weights are for TextBox's vgg16(frozen=true): leave them out")
    condition = params.pop("condition")
    usual = {name: value for name, value in params.items() if name not in ("sampler", "labelling")}
    return train_own.train_own(task, setting, out, arch=condition.arch, **usual)


def _imported(path: str) -> Any:
    try:
        return from_file(Path(path))
    except (Exception, SystemExit) as error:
        raise ValueError(f"task '{path}' does not import ({type(error).__name__}: {error})") from error


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise ValueError(f"task '{path}': cannot read the file ({error.strerror})") from error


def _of(task: Task, models: Any, shelf: Path, version: str) -> Known:
    """`models` has found, load and card."""
    words = {
        "objects": list(task.things),
        "buckets": {str(number): task.called(number) for number in task.buckets},
        "settings": {setting: task.told(setting) for setting in task.settings},
    }
    return Known(
        task.name, version, task.settings, task.cycle, task.samples, models.found, models.load, models.card, shelf,
        words=words, task=task,
    )  # fmt: skip
