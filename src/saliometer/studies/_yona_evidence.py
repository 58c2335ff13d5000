"""The causal study's rows by its short words: energy, focus, dissociation, similarity, curves, gates and verdicts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from saliometer.registry import Spec, methods
from saliometer.sanity.gates import Gate
from saliometer.sanity.uncertainty import holm, t_interval
from saliometer.sanity.verdict import Focused, Verdict, verdict
from saliometer.studies._claims import MissingError
from saliometer.summary import Estimate

TASKS = {  # the study's word -> task and setting, as rows name them
    "t": ("digits", "digit"),
    "half": ("half_digits", "bottom"),
    "t1": ("shape_digits", "shape"),
    "t2": ("shape_digits", "digit"),
    "pairs": ("pairs", "first"),
    "pairs2": ("pairs", "second"),
}
WORDS = {where: word for word, where in TASKS.items()}
CAUSAL = ("half", "t1", "t2", "pairs", "pairs2")  # tasks in which the right answer is not the object
OTHER = {"t1": "t2", "t2": "t1", "pairs": "pairs2", "pairs2": "pairs"}  # the other labelling of the same images
VBP, GBP = "gradient", "guided_backprop"
BOTH = {"VBP": VBP, "GBP": GBP}
CONTROLS = ("edge", "input", "fake_cam", "centre", "fresh_noise", "oracle")
PRIMARY = "total_variation"
ORDERS = ("top_down", "bottom_up", "independent")
Floats = npt.NDArray[np.float64]


@lru_cache(maxsize=10_000)
def names(method: str) -> str:
    """A method without its parameters."""
    return Spec.parse(method).name


@lru_cache(maxsize=10_000)
def _seeded(model: str) -> tuple[str, int]:
    """A group and a seed."""
    spec = Spec.parse(model)
    return spec.name, int(dict(spec.params)["seed"])


@dataclass(frozen=True)
class Energy:
    """The energy statistic of one method on one task, with both noise floors."""

    effect: Estimate
    p: float
    between: float
    trained: float
    random: float

    @property
    def share(self) -> float:
        """Of the difference between trained and random, what is not seed noise."""
        return self.effect.value / (self.between + 1e-12)


class Evidence:
    """Numbers of rows without a sample: those of one model, or of a group of models with their interval."""

    def __init__(self, rows: pa.Table, gates: Mapping[str, Sequence[Gate]]) -> None:
        self.rows = rows
        self.gates = gates  # by task
        whole = rows.filter(pc.field("sample") == "")
        columns = ("task", "setting", "model", "method", "metric", "definition", "region", "target", "condition")
        keys = zip(*(whole[name].to_pylist() for name in columns), strict=True)
        self._values: dict[tuple[str, ...], float] = {}
        self._seeds: dict[tuple[str, ...], dict[int, float]] = {}  # the same by seed, for models that have one
        for (task, setting, model, label, *rest), value in zip(keys, whole["value"].to_pylist(), strict=True):
            word, method = WORDS.get((task, setting), setting), names(label) if label else ""
            self._values[word, model, method, *rest] = value
            if "(" in model:
                group, seed = _seeded(model)
                self._seeds.setdefault((word, group, method, *rest), {})[seed] = value
        told = (key[2] for key in self._values if key[4] == PRIMARY and key[-1] == "against(random)")
        self.every = list(dict.fromkeys(told))  # methods and controls, by name

    @property
    def methods(self) -> list[str]:
        """Those that explain, by name."""
        return [name for name in self.every if name not in CONTROLS]

    @property
    def controls(self) -> list[str]:
        return [name for name in CONTROLS if name in self.every]

    @cached_property
    def tasks(self) -> list[str]:
        """Those with an energy."""
        there = {key[0] for key in self._values if key[3] == "E"}
        return [task for task in TASKS if task in there]

    def value(
        self, task: str, model: str, method: str, metric: str, *, definition: str = "", region: str = "",
        target: str = "", condition: str = "",
    ) -> float:  # fmt: skip
        key = (task, model, method, metric, definition, region, target, condition)
        if key not in self._values:
            what = " ".join(filter(None, (metric, definition, region, condition)))
            whose = f" by models of {model}" if model else ""
            raise MissingError(f"the run holds no {what} of {method or 'the images'} on {task}{whose}")
        found = self._values[key]
        if np.isnan(found):
            raise MissingError(f"{metric} of {method} on {task} is undefined")
        return found

    def has(self, task: str, method: str) -> bool:
        """Whether its maps had enough mass for an energy."""
        where = (PRIMARY, "", "", "against(random)")
        found = [self._values.get((task, task, method, metric, *where), np.nan) for metric in ("E", "E.low", "E.p")]
        return not np.isnan(found).any()

    def seeds(self, task: str, group: str, method: str, metric: str, **which: str) -> Floats:
        """(R,): one value for each model of a group, by seed."""
        wanted = [which.get(name, "") for name in ("definition", "region", "target", "condition")]
        found = self._seeds.get((task, group, method, metric, *wanted), {})
        if not found:
            what = " ".join(filter(None, (metric, *wanted)))
            raise MissingError(f"the run holds no {what} of {method} on {task} by models of {group}")
        return np.array([found[seed] for seed in sorted(found)], dtype=np.float64)

    def _estimate(self, task: str, model: str, method: str, metric: str, **which: str) -> Estimate:
        ends = [self.value(task, model, method, f"{metric}{end}", **which) for end in ("", ".low", ".high")]
        return Estimate(*ends)

    def energy(
        self, task: str, method: str, *, trained: str = "", against: str = "random", definition: str = PRIMARY,
        change: str = "",
    ) -> Energy:  # fmt: skip
        """Of one group of models against another; of the task's own against random ones unless others are named.

        `change` is what an ablation does otherwise.
        """
        model = trained or task
        which = {"definition": definition, "condition": ", ".join(filter(None, (f"against({against})", change)))}
        effect = self._estimate(task, model, method, "E", **which)
        numbers = [self.value(task, model, method, name, **which) for name in ("E.p", "B", "W_T", "W_R")]
        return Energy(effect, *numbers)

    def by_seed(self, task: str, method: str, metric: str) -> Floats:
        """(R,): what each trained model adds to E, or each pair of models of one seed to DD."""
        if metric == "DD":
            return self.seeds(task, "seed", method, "DD", region="mask")
        return self.seeds(task, task, method, "E", definition=PRIMARY, condition="against(random)")

    def similarity(self, task: str, method: str, measure: str = "spearman_abs", *, region: str = "") -> Estimate:
        """Between maps of trained and random models: the mean over all such pairs, its interval over training seeds."""
        return over_seeds(self.alike(task, method, measure, region=region))

    def alike(self, task: str, method: str, measure: str = "spearman_abs", *, region: str = "") -> Floats:
        """(R,): the same by seed; `region` 'local' is of pixels that are not 0, an input multiplier divided out."""
        return 1 - self.seeds(
            task, task, method, "B", definition=measure, region=region, condition="against(random)"
        )  # fmt: skip

    def focus(self, task: str, group: str, method: str, region: str = "mask") -> Estimate:
        """The share of A in the mass on A and N by a group's models; A is what decides the task."""
        return self._estimate(task, group, method, "focus", region=region)

    def dissociation(self, task: str, method: str) -> Estimate:
        """DD on identical images: how much more lies on an object by models that learned to name it than by others."""
        return self._estimate(task, "", method, "DD", region="mask")

    def focused(self, task: str, group: str) -> bool:
        """Whether a group's models were shown the task's images."""
        return any(key[:2] == (task, group) and key[3] == "focus" for key in self._values)

    def contrast(self, task: str, group: str, against: str, method: str) -> Estimate:
        """How much more focus one group's models have than another's on the same images."""
        return self._estimate(task, group, method, "contrast", region="mask", condition=f"against({against})")

    def gain(self, task: str, method: str) -> float:
        """Over untrained models, of what was left to gain."""
        trained, random = (self.focus(task, group, method).value for group in (task, "random"))
        return (trained - random) / (1 - random) if random < 1 else float("nan")

    def area(self, task: str) -> float:
        """The share of A's pixels among A's and N's."""
        return self.value(task, "", "", "area_share", region="mask")

    def left_out(self, task: str) -> int:
        """Images that have no focus: nothing there decides, or nothing distracts."""
        return int(self._values.get((task, "", "", "left_out", "", "mask", "", ""), 0))

    @cached_property
    def corrected(self) -> dict[tuple[str, str], float]:
        """(task, method) -> p after Holm over all of them."""
        found = {}
        for task in self.tasks:
            for method in self.every:
                if self.has(task, method):
                    found[task, method] = self.energy(task, method).p
        return holm(found)

    def verdict(self, task: str, method: str) -> Verdict:
        """By the rule that was fixed in advance (sanity.md 3.6)."""
        energy, focused = self.energy(task, method), None
        if task in OTHER:
            area = self.area(task)
            focused = Focused(
                self.dissociation(task, method), self.focus(task, task, method), self.focus(task, "random", method),
                Estimate(area, area, area),
            )  # fmt: skip
        return verdict(energy.effect, self.corrected[task, method], self.gates.get(task, ()), focused)

    def missed(self, tasks: Iterable[str], kinds: Sequence[str] = (), *, notes: bool = False) -> list[str]:
        """The gates that were missed, in words; of some kinds where they are named."""
        return [
            f"{task}: {gate.name} {gate.value:.3f}, wanted {gate.bar}"
            + (f" ({gate.note})" if notes and gate.note else "")
            for task in tasks
            for gate in self.gates.get(task, ())
            if not gate.passed and (not kinds or any(kind in gate.name for kind in kinds))
        ]

    @cached_property
    def posteriors(self) -> dict[tuple[str, str], list[str]]:
        """(task, weights) -> the methods that equation (1) was estimated for."""
        found: dict[tuple[str, str], list[str]] = {}
        for task, _, method, metric, *_, condition in self._values:
            if metric == "lambda":
                found.setdefault((task, condition), []).append(method)
        return found

    @property
    def invalid(self) -> list[tuple[str, str, str, int]]:
        """(task of the images, models, method, maps of theirs that have no mass)."""
        found = [(key, value) for key, value in self._values.items() if key[3] == "invalid"]
        return [(task, group, method, int(value)) for (task, group, method, *_), value in found]

    def ablations(self) -> list[tuple[str, str, str, Energy]]:
        """(what was changed, task, method, its energy)."""
        found = []
        for task, model, method, metric, *_, condition in self._values:
            word = condition.removeprefix("against(random), ")
            if metric == "E" and word != condition and "(" not in model:
                found.append((word, task, method, self.energy(task, method, trained=model, change=word)))
        return found

    def curve(
        self, task: str, method: str, order: str, measure: str = "spearman_abs", variant: str = "plain"
    ) -> dict[str, Floats]:  # fmt: skip
        """layer -> similarity (R,) to the map of the whole model, in the order in which layers were randomised."""
        found = {}
        for place, layer in self._layers.get((task, order), {}).items():
            condition = str(Spec(order, (("layer", layer), ("stage", place))))
            key = (task, task, method, measure, variant, "", "", condition)
            if key in self._seeds:
                found[layer] = np.array([value for _, value in sorted(self._seeds[key].items())])
        if not found:
            raise MissingError(f"the run holds no {order} randomisation of {method} on {task} by {measure}")
        return found

    @cached_property
    def _layers(self) -> dict[tuple[str, str], dict[int, str]]:
        """(task, order) -> stage -> the layer that was randomised last."""
        found: dict[tuple[str, str], dict[int, str]] = {}
        for task, *_, condition in self._seeds:
            if condition.partition("(")[0] in ORDERS:
                spec = Spec.parse(condition)
                params = dict(spec.params)
                found.setdefault((task, spec.name), {})[int(params["stage"])] = str(params["layer"])
        return {where: dict(sorted(stages.items())) for where, stages in found.items()}


def mean_known(values: Floats) -> float:
    """Over seeds that have a value; NaN where none has: maps of zeros are like nothing."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def over_seeds(values: Floats) -> Estimate:
    """The mean of one value per seed with its interval."""
    return t_interval(torch.from_numpy(np.ascontiguousarray(values)))


def explaining(method: str) -> bool:
    """Whether it looks at the model."""
    return method in methods and not methods[method].facts.control
