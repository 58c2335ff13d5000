"""The rows of COSE's study by model and method: what every statistic is, with its bootstrap draws over images."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import pyarrow as pa

from saliometer.cose.operations import BINS, GEOMETRIC
from saliometer.cose.summary import Cose, Sets, summaries
from saliometer.cose.table import CHANGED, UNCHANGED, Cell, Pairs, bin_of, group_of, pairs_of
from saliometer.judgement import drawn, interval
from saliometer.registry import Spec
from saliometer.studies._claims import Draws, MissingError
from saliometer.studies._cose_paper import CONV, METHODS, TRANSFORMER, data_named, family, kin
from saliometer.summary import Estimate

NAMES = {  # what rows call a method, without parameters -> the paper's name
    "grad_cam": "GradCAM", "grad_cam_plus_plus": "GradCAM++", "integrated_gradients": "IG", "blur_ig": "BlurIG",
    "guided_ig": "GuidedIG", "smooth_grad": "SmoothGrad", "lime": "LIME",
}  # fmt: skip
MODES = ("published", "default")  # claims are judged by the first, which the paper's table was made with
CORRELATIONS = ("pearson", "spearman")
FIXED = "fixed"
TABLE, ABLATION = "table", "ablation"  # what a model is there for


@dataclass(frozen=True)
class Trained:
    """A model of the study; `label` is what rows call it."""

    data: str
    label: str
    arch: str
    init: str
    frozen: bool
    role: str
    accuracy: float  # a share of the test images
    checkpoints: Mapping[str, float] = field(default_factory=dict)  # file -> accuracy, in the order of the training
    untrained: float = float("nan")  # the accuracy of its randomly initialised copy

    @property
    def kin(self) -> str:
        return kin(self.arch)

    @property
    def family(self) -> str:
        return family(self.arch)

    @property
    def of(self) -> str:
        """The data set as the paper calls it."""
        return data_named(self.data)


def reading(definition: str) -> str:
    """A definition in a word: published, default or equation; pearson or spearman; fixed."""
    params = dict(Spec.parse(definition).params)
    if params.get("fixed_target"):
        return FIXED
    return str(params["similarity"] if params.get("similarity", "ssim") != "ssim" else params["mode"])


def named(method: str) -> str:
    """The paper's name of a method, or a control's own."""
    return NAMES.get(Spec.parse(method).name, method)


class Evidence:
    """All models with their rows; `mode` is which definition claims are judged by."""

    def __init__(
        self, models: Sequence[Trained], tables: Mapping[tuple[str, str], Sequence[pa.Table]], mode: str = MODES[0]
    ) -> None:
        """`tables` are the rows of a model's runs, by data set and label."""
        self.every, self.mode = list(models), mode
        self._pairs = {where: [pairs_of(rows) for rows in some] for where, some in tables.items()}
        self._other: dict[str, Evidence] = {}

    def by(self, mode: str) -> "Evidence":
        """The same, judged by another definition."""
        if mode == self.mode:
            return self
        if mode not in self._other:
            other = Evidence(self.every, {}, mode)
            other._pairs, other.__dict__["_coses"] = self._pairs, self._coses
            self._other[mode] = other
        return self._other[mode]

    @cached_property
    def _coses(self) -> dict[tuple[str, str, str, str], Cose]:
        """By data set, model, method and reading."""
        return {
            (*where, named(one.method), reading(one.definition)): one
            for where, several in self._pairs.items()
            for pairs in several
            for one in summaries(pairs)
        }

    # Models

    def models(self, *, family: str = "", kin: str = "", data: str = "", role: str = TABLE) -> list[Trained]:
        """Those of a kind that have rows, in the study's order."""
        return [
            one
            for one in self.every
            if (one.data, one.label) in self._pairs
            and one.role == role
            and family in ("", one.family)
            and kin in ("", one.kin)
            and data in ("", one.of)
        ]

    @property
    def data(self) -> list[str]:
        """Data sets of the table, as the paper calls them."""
        return list(dict.fromkeys(one.of for one in self.models()))

    def methods(self, models: Iterable[Trained] | None = None) -> list[str]:
        """Those of the paper that every one of some models has."""
        some = list(self.models() if models is None else models)
        return [name for name in METHODS if some and all(self.has(one, name) for one in some)]

    def few(self) -> str:
        """How many models a comparison of families rests on."""
        conv, other = (len(self.models(family=one)) for one in (CONV, TRANSFORMER))
        return f"{conv} ConvNet{'s' * (conv != 1)} and {other} Transformer{'s' * (other != 1)}"

    # Statistics

    def has(self, model: Trained, method: str, how: str = "") -> bool:
        return (model.data, model.label, method, how or self.mode) in self._coses

    def cose(self, model: Trained, method: str, how: str = "") -> Cose:
        how = how or self.mode
        found = self._coses.get((model.data, model.label, method, how))
        if found is None:
            raise MissingError(f"there is no COSE ({how}) of {method} on {model.label}, {model.data}")
        return found

    def of(self, name: str, model: Trained, method: str, how: str = "", images: Sequence[str] = ()) -> Draws:
        """A statistic in percent, first as it is, then resampled; `name` as in cose.summary.Sets, `images` or all."""
        found = self.cose(model, method, how)
        if images and tuple(images) != found.images:
            found = self.only(found, images)
        values = 100 * np.concatenate(([found.value(name)], getattr(found.resampled, name)))
        if np.isnan(values[0]):
            why = "; ".join(found.reasons()) or "undefined"
            raise MissingError(f"{name} of {method} on {model.label}, {model.data}: {why}")
        if found.counting < 2:
            values[1:] = np.nan  # one image says nothing of others
        return np.asarray(values, dtype=np.float64)

    def mean(self, name: str, models: Iterable[Trained], methods: Iterable[str], how: str = "") -> Draws:
        """Over models and methods that have it, each as much as any other."""
        found, missing = [], ""
        for model in models:
            for method in methods:
                try:
                    found.append(self.of(name, model, method, how))
                except MissingError as why:
                    missing = str(why)
        if not found:
            raise MissingError(missing or "no such model was run")
        return np.asarray(np.mean(found, 0), dtype=np.float64)

    def complete(self, name: str, methods: Sequence[str], hows: Sequence[str] = ("",)) -> list[Trained]:
        """Models of the table that have a statistic of every one of some methods in every reading.

        Methods are ordered by means over these: over other models for each, the order would be of models, too.
        """
        found, missing = [], "no model was run"
        for model in self.models():
            try:
                for method, how in product(methods, hows):
                    self.of(name, model, method, how)
            except MissingError as why:
                missing = str(why)
            else:
                found.append(model)
        if not found:
            raise MissingError(missing)
        return found

    def estimate(self, name: str, models: Sequence[Trained], method: str, how: str = "") -> Estimate:
        """The mean over models with its interval; NaN where none has it."""
        try:
            return estimated(self.mean(name, models, [method], how))
        except MissingError:
            return Estimate(float("nan"), float("nan"), float("nan"))

    def by_image(self, name: str, models: Iterable[Trained], method: str) -> list[float]:
        """A statistic in percent of each image alone, one model after the other; images that have none are left out."""
        several = [getattr(self.cose(one, method).each, name) for one in models if self.has(one, method)]
        return [100 * float(value) for values in several for value in values if not np.isnan(value)]

    def lacking(self, models: Sequence[Trained], method: str) -> str:
        """How many of some models COSE has a value for, where that is not all; for tables."""
        known = sum(not np.isnan(self.estimate("harmonic", [one], method).value) for one in models)
        return f"{known} of {len(models)} models" if known < len(models) else ""

    def controls(self, model: Trained) -> list[str]:
        """Whatever is no method of the paper, in the reading that claims are judged by."""
        where = (model.data, model.label)
        found = [name for data, label, name, how in self._coses if (data, label) == where and how == self.mode]
        return [name for name in found if name not in METHODS]

    # Pairs

    @property
    def sides(self) -> list[int]:
        """The sides of the images, as their translations tell."""
        every = {one for some in self._pairs.values() for pairs in some for one in pairs.conditions}
        told = {dict(Spec.parse(one).params).get("side") for one in every if one.startswith("translate")}
        return sorted(int(side) for side in told if side is not None)

    def cells(self, model: Trained, how: str = "") -> list[tuple[str, Pairs, Cell]]:
        """The pairs of every method of the paper in a reading."""
        return [
            (named(cell.method), pairs, cell)
            for pairs in self._pairs.get((model.data, model.label), ())
            for cell in pairs.cells
            if reading(cell.definition) == (how or self.mode) and named(cell.method) in METHODS
        ]

    def grain(self, model: Trained, method: str, how: str = "") -> float:
        """The mean over images, in pixels."""
        for pairs in self._pairs.get((model.data, model.label), ()):
            for cell in pairs.cells:
                if named(cell.method) == method and reading(cell.definition) == (how or self.mode):
                    known = cell.grain[~np.isnan(cell.grain)]
                    if len(known):
                        return float(known.mean())
        raise MissingError(f"nothing says how fine the maps of {method} on {model.label}, {model.data} are")

    def only(self, found: Cose, images: Sequence[str]) -> Cose:
        """The same on some of the images, in that order; all of them have to be there."""
        if missing := set(images) - set(found.images):
            raise MissingError(f"{found.method} was not run on {len(missing)} of the images")
        places = [found.images.index(image) for image in images]
        each, right = (
            Sets(*({key: values[places] for key, values in held.items()} for held in (some.sums, some.counts)))
            for some in (found.each, found.right)
        )
        return replace(found, images=tuple(images), each=each, right=right)

    @lru_cache(maxsize=64)  # noqa: B019
    def by_magnitude(self, kinds: tuple[str, ...], *bands: tuple[int, int]) -> list[dict[str, Draws]]:
        """consistency, sensitivity and harmonic, in percent, of data pairs of these kinds, for each band of bins.

        Means over the models of the table and methods, of those where all three are defined in every band: a band is
        compared with others of the same models and methods.
        """
        names = ("consistency", "sensitivity", "harmonic")
        kept: list[list[dict[str, Draws]]] = []  # of each model and method, each band
        for model in self.models():
            for _, pairs, cell in self.cells(model):
                weights = _ones(pairs), drawn(len(pairs.images))
                found = []
                for low, high in bands:
                    sets = magnitude_sets(pairs, cell, kinds, low, high)
                    whole, resampled = (sets.weighted(some) for some in weights)
                    found.append(
                        {name: 100 * np.concatenate([getattr(s, name) for s in (whole, resampled)]) for name in names}
                    )
                if not any(np.isnan(one[0]) for values in found for one in values.values()):
                    kept.append(found)
        if not kept:
            words = " and ".join(f"{low} to {high}" for low, high in bands)
            raise MissingError(
                f"no model and method has pairs of {' or '.join(kinds)} operations that keep the prediction and pairs "
                f"that change it in bins {words}"
            )
        return [
            {name: np.asarray(_mean([some[place][name] for some in kept]), dtype=np.float64) for name in names}
            for place in range(len(bands))
        ]

    def curve(self, kinds: tuple[str, ...]) -> dict[str, list[float]]:
        """The same bin by bin, 1 to 30, without resamples; NaN where no model and method has it."""
        kept: dict[str, list[float]] = {"consistency": [], "sensitivity": [], "harmonic": []}
        cells = [(pairs, cell) for model in self.models() for _, pairs, cell in self.cells(model)]
        for number in range(1, BINS + 1):
            found = [magnitude_sets(*one, kinds, number, number).weighted(_ones(one[0])) for one in cells]
            for name, values in kept.items():
                known = [value for one in found if not np.isnan(value := float(getattr(one, name)[0]))]
                values.append(100 * float(np.mean(known)) if known else float("nan"))
        return kept


def _mean(some: Sequence[Draws]) -> Draws:
    """Of those that a resample has; NaN where it has none."""
    known = ~np.isnan(np.stack(some))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Draws = np.where(known, some, 0).sum(0) / known.sum(0)
    return found


def estimated(draws: Draws) -> Estimate:
    return interval(float(draws[0]), draws[1:], 2)


def _ones(pairs: Pairs) -> Draws:
    return np.ones((1, len(pairs.images)))


def magnitude_sets(pairs: Pairs, cell: Cell, kinds: Sequence[str], low: int, high: int) -> Sets:
    """Sums by image of pairs whose operation is of such a kind and such a size, as if all were of one kind."""
    bins = pairs.of(bin_of).astype(np.int64)
    wanted = np.isin(pairs.of(group_of), kinds) & (bins >= low) & (bins <= high)
    counted = cell.counted() & ~np.isnan(cell.value) & wanted[cell.condition]
    sums, counts = cell.sums(cell.changed.astype(np.int64), 2, counted, len(pairs.images))
    keys = [(UNCHANGED, GEOMETRIC), (CHANGED, GEOMETRIC)]
    return Sets(dict(zip(keys, sums, strict=True)), dict(zip(keys, counts, strict=True)))
