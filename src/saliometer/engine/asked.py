"""What an audit measures: methods, metrics and how maps are read; the defaults end on a laptop."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from saliometer import registry
from saliometer.engine import presets
from saliometer.engine.battery import Measure
from saliometer.engine.bench import listed_methods
from saliometer.engine.own import OwnMethod
from saliometer.engine.resolve import Asked, resolve
from saliometer.engine.run import Unit
from saliometer.engine.score import Method
from saliometer.engine.source import Source
from saliometer.registry import Spec
from saliometer.sanity.similarity import USUAL

TASK = "images"
UNIT = 32  # images that are explained, scored and kept together
UNIT_CUDA = 128  # on a GPU, where passes of fewer images take longer for each
REFERENCES = 1000  # the most other images that methods may compare with
TARGETS = ("predicted", "label", "least")
METHODS = (
    "gradient", "input_x_gradient", "integrated_gradients", "smooth_grad", "guided_backprop", "grad_cam",
    "grad_cam_plus_plus",
)  # fmt: skip
ONES = "all_ones"  # the control that comes along beside those of every table: a mask that hides nothing
METRICS = (
    "average_drop", "average_increase", "average_gain", "insertion(steps=28)", "deletion(steps=28)", "sparseness",
    "complexity", "max_sensitivity(draws=5)", "avg_sensitivity(draws=5)",
)  # fmt: skip
EVERY = {  # metrics of several named definitions
    "monotonicity": tuple(f"monotonicity(definition={name})" for name in ("nguyen", "arya", "cumulative_pearson")),
    "effective_complexity": ("effective_complexity", "effective_complexity(definition=nguyen)"),
}
LATE = ("attack_sensitivity",)  # never unasked: it attacks the model


@dataclass(frozen=True)
class Request:
    """What is to be measured; methods can join a run later, the rest is settled when it starts."""

    model: str
    images: str
    count: int
    metrics: tuple[str, ...]
    normalisations: tuple[str, ...]
    constant: str
    target: str
    seed: int
    condition: str = ""  # a transformation of the images
    pictures: int = 0  # of how many images the report gets small pictures

    @property
    def setting(self) -> str:
        """The data set's name, as rows and folders call it."""
        return re.sub(r"[^A-Za-z0-9_.=-]+", "-", self.images).strip("-.") or "images"

    @property
    def manifest(self) -> dict[str, Any]:
        return {**vars(self), "kind": "audit", "settings": [self.setting]}

    def units(self, size: int) -> list[Unit]:
        return [Unit(self.setting, start, min(start + size, self.count)) for start in range(0, self.count, size)]

    def measures(self) -> list[Measure]:
        """Every metric under every normalisation that makes a difference to what it reads."""
        found: dict[tuple[str, str], Measure] = {}
        for name in self.normalisations:
            for metric in self.metrics:
                text, _, own = metric.partition("@")
                for one in _similarities(text):
                    measure = Measure.parse(one, own or name, self.constant)
                    found.setdefault((measure.entry.name, measure.definition), measure)
        return list(found.values())


def _similarities(metric: str) -> list[str]:
    """A randomisation test that names no similarity is measured by the usual ones."""
    spec = Spec.parse(metric)
    entry = registry.metrics[spec.name]
    if not entry.facts.randomises or "similarity" not in entry.parameters or "similarity" in dict(spec.params):
        return [metric]
    return [str(Spec(spec.name, tuple(sorted((*spec.params, ("similarity", one)))))) for one in USUAL]


def methods_asked(
    asked: Asked | Sequence[Asked] | Mapping[str, OwnMethod], preset: str, full: bool, controls: bool = True
) -> list[Method]:
    """The methods asked for, or the usual ones beside the user's own; of those, one that does not fit is left out."""
    listed: list[Any] = list(asked.items()) if isinstance(asked, Mapping) else listed_methods(asked)
    if preset:
        listed = [*presets.preset(preset), *listed]
    if full and "all" not in listed:
        listed.append("all")
    own_only = all(not isinstance(one, str) or ":" in one for one in listed)
    usual = METHODS if own_only else ()
    named = {Spec.parse(one).name for one in listed if isinstance(one, str)}
    beside = [ONES] if controls and ONES not in named else []
    found = [one for one in resolve([*listed, *usual, *beside]) if not one.entry.facts.needs_truth]
    found = [replace(one, unasked=True) if one.label in usual else one for one in found]
    return [one for one in found if controls or not one.control or one.spec.name in named]


def metrics_asked(full: bool, source: Source) -> tuple[str, ...]:
    """The usual ones; with masks those that read them, with `full` every one in its own defaults."""
    known = source.masks is not None or bool(source.pictures and source.pictures.has_masks)
    located = tuple(name for name in ("pointing_game", "iou") if known)
    if not full:
        return METRICS + located
    battery = {name: entry for name, entry in registry.metrics.items() if entry.facts.reads and name not in LATE}
    wanted = [name for name, entry in battery.items() if known or not entry.facts.needs_truth]
    return tuple(text for name in wanted for text in EVERY.get(name, (name,)))


def check_measures(measures: Sequence[Measure], source: Source) -> None:
    known = source.masks is not None or bool(source.pictures and source.pictures.has_masks)
    for measure in measures:
        facts, name = measure.entry.facts, measure.entry.name
        if not facts.reads:
            raise ValueError(f"metric '{name}' reads a task's objects and their roles: it is for `saliometer bench`")
        if facts.needs_truth and not known:
            raise ValueError(f"metric '{name}' compares with masks or boxes, but the images came without: give masks")
