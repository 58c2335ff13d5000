"""What rows say in the end: means over buckets with 95 % intervals, ranks with ties, success and failure.

Intervals come from 10,000 bootstrap resamples of the images within each bucket, the same resamples for every method, so
that differences are paired. Group means weigh buckets equally.
"""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import t as student

from saliometer.registry import metrics
from saliometer.seeds import fork

RESAMPLES = 10_000
GROUPS = ("all", "simple", "complex")
Floats = npt.NDArray[np.float64]
Cell = tuple[str, str]  # setting and bucket


@dataclass(frozen=True)
class Estimate:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """A method's place: tied methods share a rank; controls and incomplete methods have none (0)."""

    method: str
    rank: int
    control: bool
    complete: bool
    mean: Estimate
    simple: Estimate
    complex: Estimate
    worst: Estimate
    worst_cell: Cell
    worst_simple: Estimate
    worst_complex: Estimate


class Scores:
    """One metric in one definition: values of every method by bucket, with their bootstrap means."""

    def __init__(
        self, rows: pa.Table, metric: str, definition: str, resamples: int = RESAMPLES, seed: int = 0,
        condition: str = "",
    ) -> None:  # fmt: skip
        wanted = {"metric": metric, "definition": definition, "condition": condition}
        chosen = rows.filter(reduce(operator.and_, (pc.field(name) == value for name, value in wanted.items())))
        chosen = of_all_models(chosen)
        column = {name: chosen[name].to_pylist() for name in ("setting", "bucket", "sample", "method")}
        value = chosen["value"].to_numpy()
        self.metric, self.definition, self.resamples, self.seed = metric, definition, resamples, seed
        self.methods = sorted(set(column["method"]))
        by_cell: dict[Cell, dict[str, dict[str, float]]] = {}
        for setting, bucket, sample, method, number in zip(*column.values(), value, strict=True):
            by_cell.setdefault((setting, bucket), {}).setdefault(sample, {})[method] = number
        order = list(dict.fromkeys(column["setting"]))
        every = {  # cell -> (images, methods)
            cell: np.array([[samples[s].get(m, np.nan) for m in self.methods] for s in sorted(samples, key=_natural)])
            for cell, samples in sorted(by_cell.items(), key=lambda item: (order.index(item[0][0]), int(item[0][1])))
        }
        self.values = {cell: array for cell, array in every.items() if not np.isnan(array).all()}
        self.cells = list(self.values)

    @cached_property
    def means(self) -> Floats:
        """(cells, methods): bucket means; NaN where a method has no value."""
        with np.errstate(invalid="ignore"):
            return np.array([_nanmean(array) for array in self.values.values()]).reshape(-1, len(self.methods))

    @cached_property
    def resampled(self) -> npt.NDArray[np.float32]:
        """(resamples, cells, methods): bucket means of the resampled images."""
        found = np.empty((self.resamples, len(self.cells), len(self.methods)), np.float32)
        for place, (cell, array) in enumerate(self.values.items()):
            rng = np.random.default_rng(fork("bootstrap", self.seed, cell))
            count = len(array)
            drawn = rng.multinomial(count, np.full(count, 1 / count), self.resamples).astype(np.float64)
            known = ~np.isnan(array)
            with np.errstate(invalid="ignore"):
                found[:, place] = (drawn @ np.where(known, array, 0)) / (drawn @ known.astype(np.float64))
        return found

    def of(self, group: str) -> list[int]:
        """The places of a group's cells: all, simple, complex, or one setting."""
        return [i for i, (setting, _) in enumerate(self.cells) if group == "all" or setting.startswith(group)]

    def estimate(self, method: str, cells: Sequence[int], join: Callable[..., Any] = np.mean) -> Estimate:
        """A mean (or minimum) over buckets with its interval."""
        place = self.methods.index(method)
        if not cells:
            return Estimate(np.nan, np.nan, np.nan)
        return self._interval(join(self.means[cells, place], 0), self._joined(tuple(cells), join)[:, place])

    def _joined(self, cells: tuple[int, ...], join: Callable[..., Any]) -> npt.NDArray[np.float32]:
        """(resamples, methods): a mean (or minimum) over buckets, kept for whoever asks next."""
        if (cells, join) not in self._kept:
            self._kept[cells, join] = join(self.resampled[:, list(cells)], 1)
        return self._kept[cells, join]

    @cached_property
    def _kept(self) -> dict[Any, npt.NDArray[np.float32]]:
        return {}

    def _interval(self, value: Any, resampled: npt.NDArray[np.float32]) -> Estimate:
        """Undefined (NaN) where a bucket has only one image, which cannot be resampled."""
        if any(len(array) < 2 for array in self.values.values()):
            return Estimate(float(value), np.nan, np.nan)
        low, high = np.percentile(resampled, [2.5, 97.5])
        return Estimate(float(value), float(low), float(high))

    def difference(
        self, one: str, other: str, cells: Sequence[int] = (), join: Callable[..., Any] = np.mean
    ) -> Estimate:
        """The paired difference of two methods' means (or minima) over buckets, all by default."""
        a, b = self.methods.index(one), self.methods.index(other)
        places = list(cells) or list(range(len(self.cells)))
        joined = self._joined(tuple(places), join)
        return self._interval(
            join(self.means[places, a], 0) - join(self.means[places, b], 0), joined[:, a] - joined[:, b]
        )

    def spread(self, method: str, group: str) -> float:
        """The standard deviation over bucket means, as the paper's error bars."""
        return float(self.means[self.of(group), self.methods.index(method)].std())

    def complete(self, method: str) -> bool:
        """Whether it has a value for every image that any method has one for."""
        place = self.methods.index(method)
        return not any(np.isnan(array[:, place]).any() for array in self.values.values())


def models_of(rows: pa.Table) -> dict[str, list[str]]:
    """setting -> its models, in the order of rows."""
    found: dict[str, list[str]] = {}
    for pair in rows.select(["setting", "model"]).group_by(["setting", "model"]).aggregate([]).to_pylist():
        found.setdefault(pair["setting"], []).append(pair["model"])
    return found


def of_all_models(rows: pa.Table) -> pa.Table:
    """One row for each image and method of a metric: the mean over the setting's models that have a value."""
    if all(len(models) < 2 for models in models_of(rows).values()):
        return rows
    defined = pc.if_else(pc.is_nan(rows["value"]), pa.scalar(None, pa.float64()), rows["value"])
    known = rows.select(["setting", "bucket", "sample", "method"]).append_column("value", defined)
    means = known.group_by(["setting", "bucket", "sample", "method"], use_threads=False).aggregate([("value", "mean")])
    return means.rename_columns([name.removesuffix("_mean") for name in means.column_names])


def _natural(sample: str) -> tuple[int, str]:
    """test-9 before test-10: resamples must not depend on the order of rows."""
    return len(sample), sample


def _nanmean(array: Floats) -> Floats:
    known = ~np.isnan(array)
    result: Floats = np.where(known, array, 0).sum(0) / known.sum(0)
    return result


def standings(scores: Scores, controls: Iterable[str] = ()) -> list[Standing]:
    """Best mean first; a method ties with the leader of its group where their paired difference's interval holds 0."""
    beside = set(controls)
    found = [_standing(scores, method, method in beside) for method in scores.methods]
    sign = 1 if lower_is_better(scores.metric) else -1
    found.sort(key=lambda s: (not s.complete, sign * s.mean.value, s.method))
    ranks = tied_ranks([s.method for s in found if s.complete and not s.control], scores.difference)
    return [Standing(**(vars(standing) | {"rank": ranks.get(standing.method, 0)})) for standing in found]


def tied_ranks(order: Sequence[str], difference: Callable[[str, str], Estimate]) -> dict[str, int]:
    """Of methods from best to worst: one shares its group leader's rank where their paired interval holds 0."""
    found: dict[str, int] = {}
    leader, rank = "", 0
    for place, method in enumerate(order, 1):
        gap = difference(leader, method) if leader else None
        if gap is None or not (gap.value == 0 or gap.low <= 0 <= gap.high):
            leader, rank = method, place
        found[method] = rank
    return found


def lower_is_better(metric: str) -> bool:
    return metric in metrics and metrics[metric].facts.better == "lower"


def _standing(scores: Scores, method: str, control: bool) -> Standing:
    mean, simple, complex_ = (scores.estimate(method, scores.of(group)) for group in GROUPS)
    means = scores.means[:, scores.methods.index(method)]
    lowest, extreme = (np.max, np.nanargmax) if lower_is_better(scores.metric) else (np.min, np.nanargmin)
    worst = [scores.estimate(method, scores.of(group), lowest) for group in GROUPS]
    cell = ("", "") if np.isnan(means).all() else scores.cells[int(extreme(means))]
    return Standing(method, 0, control, scores.complete(method), mean, simple, complex_, worst[0], cell, *worst[1:])


@dataclass(frozen=True)
class Uncertain:
    """A mean over all models, with the interval over images for these models, and that over models."""

    images: Estimate
    models: Estimate  # Student's t of the models' means, each setting's by themselves; NaN with one model each
    spread: float  # the standard deviation between models of one setting, pooled
    count: int  # of models in the setting that has the most


def over_models(
    rows: pa.Table, metric: str, definition: str, group: str = "all", resamples: int = RESAMPLES
) -> dict[str, Uncertain]:
    """method -> how sure its mean is; {} where every setting has one model.

    Models of different settings were trained apart, so their variances add, weighed by the settings' buckets; degrees
    of freedom after Welch and Satterthwaite.
    """
    models = models_of(rows)
    if max(map(len, models.values()), default=0) < 2:
        return {}
    whole = Scores(rows, metric, definition, resamples)
    places = whole.of(group)
    shares = {s: sum(whole.cells[place][0] == s for place in places) / len(places) for s in models}
    each = {
        setting: [Scores(_of_model(rows, setting, model), metric, definition) for model in models[setting]]
        for setting, share in shares.items()
        if share
    }

    def means(method: str) -> dict[str, list[float]]:
        return {
            setting: [float(one.means[:, one.methods.index(method)].mean()) for one in some if method in one.methods]
            for setting, some in each.items()
        }

    return {method: _uncertain(whole.estimate(method, places), means(method), shares) for method in whole.methods}


def _of_model(rows: pa.Table, setting: str, model: str) -> pa.Table:
    return rows.filter((pc.field("setting") == setting) & (pc.field("model") == model))


def _uncertain(image: Estimate, means: dict[str, list[float]], shares: dict[str, float]) -> Uncertain:
    counts = {setting: len(values) for setting, values in means.items()}
    if min(counts.values(), default=0) < 2:
        return Uncertain(image, Estimate(image.value, np.nan, np.nan), np.nan, max(counts.values(), default=0))
    variances = {setting: float(np.var(values, ddof=1)) for setting, values in means.items()}
    parts = {setting: shares[setting] ** 2 * variances[setting] / counts[setting] for setting in means}
    variance = sum(parts.values())
    freedom = variance**2 / sum(part**2 / (counts[s] - 1) for s, part in parts.items()) if variance else 1.0
    half = float(student.ppf(0.975, freedom)) * variance**0.5
    inside = sum((counts[s] - 1) * variances[s] for s in means) / sum(count - 1 for count in counts.values())
    return Uncertain(
        image, Estimate(image.value, image.value - half, image.value + half), inside**0.5, max(counts.values())
    )


@dataclass(frozen=True)
class Verdict:
    """Figure 7 for one method and setting: buckets with both kinds of object in which it succeeds, and fails."""

    succeeded: int
    failed: int
    buckets: int


def verdicts(primary: Scores, secondary: Scores) -> dict[str, dict[str, Verdict]]:
    """method -> setting -> how many of the buckets with both kinds of object have mean PAFL > 0.5, and SAFL > PAFL."""
    both = [cell for cell in primary.cells if cell in secondary.values]
    found: dict[str, dict[str, Verdict]] = {}
    for place, method in enumerate(primary.methods):
        for setting in dict.fromkeys(setting for setting, _ in both):
            cells = [cell for cell in both if cell[0] == setting]
            pafl = primary.means[[primary.cells.index(cell) for cell in cells], place]
            safl = secondary.means[[secondary.cells.index(cell) for cell in cells], secondary.methods.index(method)]
            known = int((~np.isnan(pafl + safl)).sum())  # a method that failed here has no verdict
            verdict = Verdict(int((pafl > 0.5).sum()), int((safl > pafl).sum()), known)
            found.setdefault(method, {})[setting] = verdict
    return found


def oddities(rows: pa.Table) -> dict[str, dict[str, int]]:
    """method -> how many of its maps were NaN, zero or constant, and whether it is random."""
    one = rows.filter((pc.field("metric") == "pafl") & (pc.field("condition") == ""))
    if not len(one):
        return {}
    one = one.filter(pc.field("definition") == one["definition"][0].as_py())
    found: dict[str, Counter[str]] = {}
    columns = (one[name].to_pylist() for name in ("method", "note", "value"))
    for method, note, value in zip(*columns, strict=True):
        for word in ("nan map", "zero map", "constant map", "random"):
            excused = "zero" in word and np.isnan(value)  # nothing decides in this image: an empty map is right
            if word in note.split("; ") and not excused:
                found.setdefault(method, Counter())[word] += 1
    return {method: dict(counts) for method, counts in found.items()}


def problems(rows: pa.Table) -> list[str]:
    """What a reader must know of the maps, in words."""
    said = []
    for method, counts in oddities(rows).items():
        for word, count in counts.items():
            if word == "nan map":
                many = f"{count} maps; they score" if count > 1 else "1 map; it scores"
                said.append(f"{method} returned NaN or infinity in {many} 0. Wanted finite numbers")
            elif word == "random":
                said.append(f"{method} gives other maps when called again: its scores are one draw. Let it take `seed`")
            else:
                what = "0" if word == "zero map" else "what chance gives"
                many = f"{count} images; they score" if count > 1 else "1 image; it scores"
                said.append(f"{method} returned a {word} for {many} {what}")
    return said
