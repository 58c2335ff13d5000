"""The study's rows by the paper's names, and the correlations its claims are about."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from saliometer.engine.presets import ZHANG
from saliometer.judgement import Column, average_ranks, columns
from saliometer.registry import Spec
from saliometer.studies._claims import Draws, MissingError

METHODS = list(ZHANG)
FAKE = "Fake-CAM"
GRADIENTS = ["Gradient", "IG", "GuidedBP"]
CAMS = ["Grad-CAM", "Grad-CAM++", "Score-CAM"]
REGIONS = [*CAMS, "RISE", "LIME", "IBA"]
INFORMED = [name for name in METHODS if name != FAKE]
METRICS = {  # the paper's column -> metric, factor and offset: printed = offset + factor x value
    "AI": ("average_increase", 100, 0), "AD_bar": ("average_drop", -100, 100), "AG": ("average_gain", 100, 0),
    "I": ("insertion", 100, 0), "D_bar": ("deletion", -100, 100), "Monotonicity": ("monotonicity", 1, 0),
    "MS": ("max_sensitivity", 1, 0), "AS": ("avg_sensitivity", 1, 0), "Sparseness": ("sparseness", 100, 0),
    "Complexity": ("complexity", 1, 0), "EC": ("effective_complexity", 1, 0),
}  # fmt: skip
FIDELITY = ["AI", "AD_bar", "AG", "I", "D_bar"]
TRANSFORMS = ("mixup", "resize", "rotation", "crop")
TARGETS = {"ground_truth": "label", "predicted": "predicted", "least": "least"}


class Evidence:
    """The study's rows by the paper's names; numbers as the paper prints them."""

    def __init__(self, rows: pa.Table, pixels: int, labelled: bool, specs: Mapping[str, str] = ZHANG) -> None:
        self.rows, self.pixels, self.labelled = rows.combine_chunks(), pixels, labelled
        self.specs = specs  # the paper's name -> what rows call it
        self.conditions = sorted(set(rows["condition"].unique().to_pylist()) - {""})

    @lru_cache(maxsize=256)  # noqa: B019
    def _columns(self, target: str, condition: str) -> list[Column]:
        return columns(self.rows, condition=condition, target=target)

    def column(self, key: str, target: str = "label", condition: str = "", signed: bool = False) -> Column:
        metric = METRICS[key][0] if key in METRICS else key
        found = [
            column
            for column in self._columns(target, condition)
            if column.metric == metric and column.definition.startswith("signed_joint") == signed
        ]
        if not found:
            where = f" under {condition}" if condition else ""
            raise MissingError(f"the run holds no {metric} for target {target}{where}")
        return found[0]

    def of(self, key: str, method: str, target: str = "label", condition: str = "", signed: bool = False) -> Draws:
        """The mean over images, first as it is, then resampled."""
        return self.printed(key, self.column(key, target, condition, signed), method)

    def place(self, column: Column, method: str) -> int:
        """Where a column holds a method, or a control, which rows call as we do."""
        spec = self.specs.get(method, method)
        if spec not in column.methods:
            raise MissingError(f"the run holds no {column.metric} of {method}")
        return column.methods.index(spec)

    def printed(self, key: str, column: Column, method: str) -> Draws:
        place = self.place(column, method)
        _, factor, offset = METRICS[key]
        found: Draws = offset + factor * np.concatenate((column.means[place : place + 1], column.resampled[:, place]))
        if np.isnan(found[0]):
            raise MissingError(f"{column.metric} of {method} is undefined for every image")
        return found

    def all(self, key: str, methods: Iterable[str] = METHODS, **where: str) -> dict[str, Draws]:
        return {method: self.of(key, method, **where) for method in methods}  # type: ignore[arg-type]

    def variations(self, transform: str) -> list[str]:
        """From the smallest number to the largest."""
        found = [condition for condition in self.conditions if condition.partition("(")[0] == transform]
        if not found:
            raise MissingError(f"the run holds no images under {transform}")
        return sorted(found, key=lambda condition: Spec.parse(condition).params)

    def under(self, key: str, method: str, transform: str) -> tuple[Draws, Draws]:
        """The mean under a transform, over its variations, and without it on the same images."""
        some = [self.column(key, "label", condition) for condition in self.variations(transform)]
        changed: Draws = np.mean([self.printed(key, column, method) for column in some], 0)
        before = only(self.column(key), some[0].images)
        return changed, self.printed(key, before, method)


def only(column: Column, images: Sequence[str]) -> Column:
    """A column on some images, all of which it has to hold."""
    missing = set(images) - set(column.images)
    if missing:
        raise MissingError(f"the run holds no {column.metric} of {len(missing)} images, '{min(missing)}' among them")
    return column.only(images)


def over_methods(z: Evidence, one: str, other: str, methods: Sequence[str]) -> Draws:
    """Spearman's correlation of two metrics over methods."""
    a, b = (places(z.all(key, methods)) for key in (one, other))
    a, b = a - a.mean(0), b - b.mean(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Draws = (a * b).sum(0) / np.sqrt((a * a).sum(0) * (b * b).sum(0))
    return found


def places(values: Mapping[str, Draws]) -> Draws:
    """(methods, draws): ranks among methods, 1 for the lowest, ties averaged; the first 2,000 resamples are enough."""
    from scipy.stats import rankdata

    table = np.stack([draws[:2001] for draws in values.values()])
    return np.asarray(rankdata(table, axis=0), dtype=np.float64)


def pearson(a: Draws, b: Draws) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else float("nan")


def with_confidence(z: Evidence, key: str, method: str) -> Draws:
    """Spearman's correlation over images of the target's probability and a score, as it is printed."""
    column, sure = z.column(key), z.column("probability")
    score = METRICS[key][1] * column.values[:, z.place(column, method)]
    p = only(sure, column.images).values[:, z.place(sure, method)]
    return weighted_spearman(p, score)


def weighted_spearman(a: Draws, b: Draws, resamples: int = 2000) -> Draws:
    """Of ranks over all images, NaN where there is no spread; resamples weigh the images, the ranks stay."""
    known = ~(np.isnan(a) | np.isnan(b))
    x, y = average_ranks(a[known]), average_ranks(b[known])
    count = len(x)
    if count < 3:
        raise MissingError(f"{count} images are too few for a correlation")
    drawn = _drawn(count, resamples) / count
    mean_x, mean_y = drawn @ x, drawn @ y
    covariance = drawn @ (x * y) - mean_x * mean_y
    spread = (drawn @ x**2 - mean_x**2) * (drawn @ y**2 - mean_y**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Draws = np.where(spread > 1e-9, covariance / np.sqrt(np.maximum(spread, 1e-300)), np.nan)
    return found


@lru_cache(maxsize=4)
def _drawn(count: int, resamples: int) -> Draws:
    """(1 + resamples, images): once each, then how often each is drawn."""
    rng = np.random.default_rng(0)
    return np.vstack((np.ones(count), rng.multinomial(count, np.full(count, 1 / count), resamples)))


def flat(z: Evidence, column: Column, methods: Sequence[str], images: Sequence[str]) -> Draws:
    """(images, methods)."""
    found: Draws = only(column, images).values[:, [z.place(column, m) for m in methods]]
    return found


def clustered_spearman(a: Draws, b: Draws, resamples: int = 1000) -> Draws:
    """Pooled over images and methods, resampling images with all their methods; ranks stay."""
    known = ~(np.isnan(a) | np.isnan(b))
    x, y = np.full_like(a, np.nan), np.full_like(b, np.nan)
    x[known], y[known] = average_ranks(a[known]), average_ranks(b[known])
    drawn = _drawn(len(a), resamples)
    sums = [np.nansum(v, 1) for v in (known.astype(float), x, y, x * x, y * y, x * y)]
    n, sx, sy, sxx, syy, sxy = (drawn @ s for s in sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Draws = (n * sxy - sx * sy) / np.sqrt((n * sxx - sx**2) * (n * syy - sy**2))
    found[~np.isfinite(found)] = np.nan  # no spread
    return found


def mean_rho(a: Draws, b: Draws) -> float:
    """The mean over rows of Spearman's correlation within each."""
    found = []
    for x, y in zip(a, b, strict=True):
        known = ~(np.isnan(x) | np.isnan(y))
        if known.sum() > 2 and x[known].std() and y[known].std():
            found.append(pearson(average_ranks(x[known]), average_ranks(y[known])))
    return float(np.mean(found)) if found else float("nan")
