"""COSE from rows: consistency, sensitivity and what is made of them, with intervals over images, not pairs.

Everything here is made of rows alone, as saliometer.cose.table reads them.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.cose.operations import GEOMETRIC, PHOTOMETRIC
from saliometer.cose.table import (
    CHANGED,
    CHECKPOINT,
    DATA,
    GROUPS,
    MODELS,
    UNCHANGED,
    Pairs,
    group_of,
    pairs_of,
    unmoved,
)
from saliometer.judgement import Column, Floats, drawn, interval
from saliometer.registry import Spec, metrics
from saliometer.summary import Estimate

CHANCE = 0.5  # the most that COSE can be where similarity has nothing to do with the prediction: 2 c (1 - c)
KEYS = tuple((metric, group) for metric in (UNCHANGED, CHANGED) for group in GROUPS)
NAMES = {  # a column -> what it is of the Sets
    "cose": "harmonic", "cose.consistency": "consistency", "cose.sensitivity": "sensitivity",
    "cose.discrimination": "discrimination", "cose.geometric_mean": "geometric",
    "cose.sensitivity_geometric": "sensitivity_geometric", "cose.sensitivity_photometric": "sensitivity_photometric",
    "cose.sensitivity_model": "sensitivity_model",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sets:
    """Sums of similarities and numbers of pairs, by set and image or resample: (..., images) or (resamples,)."""

    sums: dict[tuple[str, str], Floats]  # (cose.unchanged or cose.changed, group) -> sums of similarities
    counts: dict[tuple[str, str], Floats]

    def weighted(self, weights: Floats) -> "Sets":
        """Over images drawn so often, (resamples, images) each; all in one product, for the weights are many."""
        held = np.stack([*self.sums.values(), *self.counts.values()], 1)
        found = (weights @ held).T
        count = len(self.sums)
        return Sets(
            dict(zip(self.sums, found[:count], strict=True)), dict(zip(self.counts, found[count:], strict=True))
        )  # fmt: skip

    def number(self, metric: str, groups: Sequence[str]) -> Floats:
        return self._sum(self.counts, metric, groups)

    @staticmethod
    def _sum(held: dict[tuple[str, str], Floats], metric: str, groups: Sequence[str]) -> Floats:
        """Over groups that are there at all."""
        return np.asarray(sum(held[metric, group] for group in groups if (metric, group) in held), dtype=np.float64)

    def mean(self, metric: str, groups: Sequence[str]) -> Floats:
        total = self._sum(self.sums, metric, groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            found: Floats = total / self.number(metric, groups)
        return found

    @property
    def consistency(self) -> Floats:
        """Of data pairs alone: another model with the same prediction never counts."""
        return self.mean(UNCHANGED, DATA)

    @property
    def sensitivity(self) -> Floats:
        return 1 - self.mean(CHANGED, (*DATA, *MODELS))

    @property
    def sensitivity_geometric(self) -> Floats:
        return 1 - self.mean(CHANGED, (GEOMETRIC,))

    @property
    def sensitivity_photometric(self) -> Floats:
        return 1 - self.mean(CHANGED, (PHOTOMETRIC,))

    @property
    def sensitivity_model(self) -> Floats:
        return 1 - self.mean(CHANGED, MODELS)

    @property
    def discrimination(self) -> Floats:
        """D = c + s - 1: how much more alike maps are where the prediction stays."""
        return self.consistency + self.sensitivity - 1

    @property
    def harmonic(self) -> Floats:
        return harmonic(self.consistency, self.sensitivity)

    @property
    def geometric(self) -> Floats:
        return geometric(self.consistency, self.sensitivity)


def harmonic(consistency: Floats, sensitivity: Floats) -> Floats:
    """COSE as the paper defines it; NaN where it means nothing, at consistency 0 or below."""
    total = consistency + sensitivity
    with np.errstate(invalid="ignore", divide="ignore"):
        found = 2 * consistency * sensitivity / total
    return np.where((consistency > 0) & (total > 0), found, np.nan)


def geometric(consistency: Floats, sensitivity: Floats) -> Floats:
    """The root of the product, which the authors' script prints."""
    with np.errstate(invalid="ignore"):
        found = np.sqrt(consistency * np.maximum(sensitivity, 0))
    return np.where(consistency > 0, found, np.nan)


@dataclass(frozen=True, eq=False)
class Cose:
    """One method in one definition, on all its pairs."""

    method: str
    definition: str
    images: tuple[str, ...]
    each: Sets  # by image
    right: Sets  # the same of images that the model gets right alone
    undefined: dict[str, int]  # reason -> pairs that have no similarity
    still: int  # translations by less than a pixel
    flat: int = 0  # images whose own map is constant
    without: tuple[int, int] = (0, 0)  # unchanged data pairs and changed pairs that have no similarity

    @property
    def correct_only(self) -> "Cose":
        """On images that the model gets right alone, which is all that mode published ever counts."""
        return replace(self, each=self.right)

    @cached_property
    def whole(self) -> Sets:
        return self.each.weighted(np.ones((1, len(self.images))))

    @cached_property
    def resampled(self) -> Sets:
        return self.each.weighted(drawn(len(self.images)))

    def value(self, name: str) -> float:
        """`name` is one of the Sets' statistics: consistency, sensitivity, harmonic, ..."""
        return float(getattr(self.whole, name)[0])

    @cached_property
    def counting(self) -> int:
        """How many images have a pair that counts: one of them alone has no interval."""
        return int((np.sum(list(self.each.counts.values()), 0) > 0).sum())

    def estimate(self, name: str) -> Estimate:
        return interval(self.value(name), getattr(self.resampled, name), self.counting)

    def count(self, metric: str, *groups: str) -> int:
        return int(self.whole.number(metric, groups or (*DATA, *MODELS))[0])

    def reasons(self) -> list[str]:
        """Why COSE has no value, and what else a reader must know of the pairs."""
        said = []
        kept, moved = self.without
        if not (self.counting or kept or moved) and dict(Spec.parse(self.definition).params).get("mode") == "published":
            return [f"the model gets none of the {len(self.images)} images right, and mode published counts no others"]
        if not self.count(UNCHANGED, *DATA):
            lacking = f"none of the {kept:,} changed images that kept their prediction has a similarity"
            said.append(f"{lacking if kept else 'no changed image kept its prediction'}, so there is no consistency")
        elif self.value("consistency") <= 0:
            said.append(f"consistency is {self.value('consistency'):.3f}: at or below 0 COSE means nothing")
        if not self.count(CHANGED) and moved:
            said.append(
                f"none of the {moved:,} pairs that changed the prediction has a similarity, so there is no sensitivity"
            )
        elif not self.count(CHANGED):
            tried = self.count(UNCHANGED, CHECKPOINT)
            advice = (
                "these checkpoints predict the same, give earlier ones" if tried else "give checkpoints of the training"
            )
            said.append(f"no pair changed the prediction, so there is no sensitivity: {advice}")
        if self.flat:
            said.append(
                f"maps of {self.flat} of {len(self.images)} images are constant: they count as 0 everywhere, so that "
                "they stay whatever changes"
            )
        said += [
            f"{_counted(count, 'pair has', 'pairs have')} no similarity: {why}" for why, count in self.undefined.items()
        ]
        return said

    def sentence(self) -> str:
        """What it rests on; the same for all methods of a definition."""
        pairs = ", ".join(f"{count:,} {kind}" for kind, count in self.as_dict()["pairs"].items())
        words = _counted(self.still, "translation is", "translations are")
        still = f" {words} below one pixel." if self.still else ""
        return f"COSE ({self.definition.partition('(')[0]}) is made of these pairs: {pairs}.{still}"

    def as_dict(self) -> dict[str, Any]:
        """For machines; undefined numbers are None."""
        found: dict[str, Any] = {"method": self.method, "definition": self.definition, "images": len(self.images)}
        told = {column: self.estimate(name) for column, name in NAMES.items()}
        for column, one in (told | {"cose, correct only": self.correct_only.estimate("harmonic")}).items():
            found[column] = [None if math.isnan(value) else value for value in (one.value, one.low, one.high)]
        pairs = {f"unchanged {group}": self.count(UNCHANGED, group) for group in DATA}
        pairs |= {f"changed {group}": self.count(CHANGED, group) for group in (*DATA, *MODELS)}
        return found | {"pairs": pairs, "translations_by_0": self.still, "chance": CHANCE, "notes": self.reasons()}


def _counted(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def sentences(found: Sequence[Cose]) -> list[str]:
    """What COSE rests on, definition by definition where that differs, and what chance gives."""
    said = list(dict.fromkeys(one.sentence() for one in {one.definition: one for one in found}.values()))
    if said:
        said.append(
            f"Where maps have nothing to do with the prediction COSE is {100 * CHANCE:g} % at most, and a map that "
            "tells the label wins it: see the controls, and D."
        )
    return said


def label(column: Column, among: Sequence[Column]) -> str:
    """What tables call a column: the metric, and what tells it from others of its metric but the mode, its stage."""
    usual = metrics["cose"].parameters
    several = [dict(Spec.parse(one.definition).params) for one in among if one.metric == column.metric]
    odd = tuple(
        (key, value)
        for key, value in Spec.parse(column.definition).params
        if key != "mode" and value != usual[key] and any(one.get(key) != value for one in several)
    )
    return str(Spec(column.metric, odd))


def coses(rows: pa.Table, *, correct_only: bool | None = None) -> list[Cose]:
    """Of every method and definition in rows; `correct_only` as Cell.counted has it."""
    return summaries(pairs_of(rows), correct_only=correct_only)


def summaries(pairs: Pairs, *, correct_only: bool | None = None) -> list[Cose]:
    groups = pairs.of(lambda condition: GROUPS.index(group_of(condition))).astype(np.int64)
    still = pairs.of(unmoved).astype(bool)
    found = []
    for cell in pairs.cells:
        counted, known = cell.counted(correct_only), ~np.isnan(cell.value)
        place = cell.changed * len(GROUPS) + groups[cell.condition]
        sets, right = (
            Sets(
                *(dict(zip(KEYS, some, strict=True)) for some in cell.sums(place, len(KEYS), chosen, len(pairs.images)))
            )
            for chosen in (counted & known, cell.counted(True) & known)
        )
        lost, of_data = counted & ~known, groups[cell.condition] < len(DATA)
        notes = Counter(str(note) or "undefined" for note in cell.note[lost])
        without = int((lost & ~cell.changed & of_data).sum()), int((lost & cell.changed).sum())
        unmoving = int(still[cell.condition[counted]].sum())
        found.append(
            Cose(cell.method, cell.definition, pairs.images, sets, right, dict(notes), unmoving, cell.flat, without)
        )
    return found


class Ratio(Column):
    """A statistic of all pairs as a column: no mean of the images' values, but made of the same resamples."""

    def __init__(self, metric: str, some: Sequence[Cose]) -> None:
        name = NAMES[metric]
        values = np.stack([getattr(one.each, name) for one in some], 1)
        super().__init__(metric, some[0].definition, tuple(one.method for one in some), some[0].images, values)
        self.__dict__["means"] = np.array([one.value(name) for one in some])  # where Column would keep them
        self.__dict__["resampled"] = np.stack([getattr(one.resampled, name) for one in some], 1)

    def undefined(self, method: str) -> int:
        """An image without changed pairs is nothing odd."""
        return 0

    def _against(self, other: str) -> tuple[Floats, Floats, Floats]:
        place = [self.methods.index(other)]
        counts = np.full(len(self.methods), float(len(self.images)))
        return (
            self.sign * (self.means - self.means[place]),
            self.sign * (self.resampled - self.resampled[:, place]),
            counts,
        )


def columns(found: Sequence[Cose]) -> list[Column]:
    """Every statistic of every definition, the methods side by side."""
    definitions = dict.fromkeys(one.definition for one in found)
    return [
        Ratio(metric, [one for one in found if one.definition == definition])
        for definition in definitions
        for metric in NAMES
    ]
