"""One run against another: every method's scores in both, and the difference with its 95 % interval.

Where both runs scored the same images, both are resampled alike, so that the difference is paired; else each is
resampled by itself.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saliometer import judgement
from saliometer.engine.run import Run
from saliometer.report.bench import FEWER
from saliometer.report.book import Book, Cell, Head
from saliometer.report.merged import retrained
from saliometer.summary import RESAMPLES, Estimate, Scores

Floats = npt.NDArray[Any]
HASHES = ("weights", "images", "glyphs", "references")  # told apart, but not for people to read
SAME_IMAGES = ("task", "glyphs", "sampler", "images")  # with the seed and what was done to them
OPEN = "no difference to be told"


@dataclass(frozen=True)
class Pair:
    """A method under a metric in both runs; the gap is this run minus the other."""

    method: str
    role: str
    this: Cell
    other: Cell
    gap: Estimate
    verdict: str


@dataclass(frozen=True, eq=False)
class Contrast:
    """A metric in one definition that both runs hold."""

    head: Head
    paired: bool
    images: tuple[int, int]
    pairs: Sequence[Pair]


@dataclass(frozen=True, eq=False)
class Compared:
    name: str  # of the other run
    this: str
    differs: Sequence[str]  # sentences
    rows: Sequence[Contrast]

    def data(self) -> dict[str, Any]:
        """Plain JSON; undefined numbers are None."""
        return {
            "name": self.name, "this": self.this, "differs": list(self.differs),
            "heads": [_plain_contrast(one) for one in self.rows],
        }  # fmt: skip


def compared(run: Run, other: Run, book: Book, other_book: Book) -> Compared:
    """The books are the runs' own: means, intervals and ranks are theirs, so that all pages agree."""
    if book.kind != other_book.kind:
        raise ValueError(
            f"'{run.folder}' is of kind {book.kind} and '{other.folder}' of kind {other_book.kind}: they share no "
            "metric. Compare two runs of one kind"
        )
    heads = [(head, there) for head in book.heads for there in other_book.heads if _same(head, there)]
    paired = _same_images(run, other)
    audited = book.kind == "audit"
    here, there = (_Sources(one.rows(), audited) for one in (run, other))
    roles = {method.name: method.role for method in book.methods}
    found = [_contrast(one, two, here, there, paired, roles) for one, two in heads]
    found = [one for one in found if one.pairs]
    if not found:
        raise ValueError(
            f"'{run.folder}' and '{other.folder}' share no method under a metric of the same definition, so there is "
            f"nothing to compare: {_held(book)} here, {_held(other_book)} there"
        )
    name = other_book.name if other_book.name != book.name else str(other.folder)
    return Compared(name, book.name, _differs(run, other), found)


def _same(one: Head, other: Head) -> bool:
    """Columns that join others, such as the worst bucket, are left out."""
    key = one.metric, one.definition, one.label
    return one.values is not None and other.values is not None and key == (other.metric, other.definition, other.label)


def _held(book: Book) -> str:
    some = list(dict.fromkeys(head.metric for head in book.heads))
    return f"{len(book.methods)} methods under {', '.join(some[:6])}{', ...' * (len(some) > 6)}"


def _same_images(one: Run, other: Run) -> bool:
    def shown(run: Run) -> list[Any]:
        request, fixed = run.manifest["request"], run.manifest["fixed"]
        drawn = request["seed"] if "images" not in fixed else ""  # an audit's images are not drawn
        return [*(fixed.get(name) for name in SAME_IMAGES), drawn, request.get("condition", "")]

    return shown(one) == shown(other)


@dataclass(frozen=True, eq=False)
class Measured:
    """A metric's means and their resamples."""

    images: frozenset[tuple[str, ...]]
    methods: Sequence[str]
    means: Floats  # (methods,)
    resampled: Floats  # (resamples, methods)
    single: bool  # too few images to resample


class _Sources:
    """A run's rows, asked for one metric after another."""

    def __init__(self, rows: pa.Table, audited: bool) -> None:
        self.rows, self.audited = rows.filter(pc.field("condition") == "") if not audited else rows, audited
        self.columns = judgement.columns(rows) if audited else []

    def of(self, head: Head) -> Measured:
        return self._column(head) if self.audited else self._scores(head)

    def _column(self, head: Head) -> Measured:
        """In the order of the images' names, so that the same images are drawn in both runs."""
        column = next(c for c in self.columns if (c.metric, c.definition) == (head.metric, head.definition))
        column = column.only(sorted(column.images))
        images = frozenset((image,) for image in column.images)
        return Measured(images, column.methods, column.means, column.resampled, len(images) < 2)

    def _scores(self, head: Head) -> Measured:
        rows = self.rows.filter((pc.field("metric") == head.metric) & (pc.field("definition") == head.definition))
        scores = Scores(rows, head.metric, head.definition, RESAMPLES if head.metric == "pafl" else FEWER)
        images = frozenset(zip(*(rows[name].to_pylist() for name in ("setting", "bucket", "sample")), strict=True))
        single = any(len(array) < 2 for array in scores.values.values())
        return Measured(images, scores.methods, scores.means.mean(0), scores.resampled.mean(1), single)


def _contrast(
    head: Head, there: Head, ours: _Sources, theirs: _Sources, same_images: bool, roles: Mapping[str, str]
) -> Contrast:
    one, other = ours.of(head), theirs.of(there)
    paired = same_images and one.images == other.images
    pairs = []
    for method, cell in head.cells.items():
        if method in there.cells:
            gap = difference(one, other, method, paired)
            pairs.append(Pair(method, roles[method], cell, there.cells[method], gap, verdict(gap, head.better)))
    return Contrast(head, paired, (len(one.images), len(other.images)), pairs)


def difference(one: Measured, other: Measured, method: str, paired: bool) -> Estimate:
    """This mean minus the other's; resamples that must not go together are moved against each other by one."""
    a, b = one.methods.index(method), other.methods.index(method)
    value = float(one.means[a] - other.means[b])
    count = min(len(one.resampled), len(other.resampled))
    mine, others = one.resampled[:count, a], other.resampled[:count, b]
    gaps = mine - (others if paired else np.roll(others, 1))
    known = gaps[~np.isnan(gaps)]
    if one.single or other.single or not len(known):
        return Estimate(value, math.nan, math.nan)
    low, high = np.percentile(known, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def verdict(gap: Estimate, better: str) -> str:
    """In words; a difference whose interval holds 0, or that has none, cannot be told."""
    if math.isnan(gap.low) or gap.low <= 0 <= gap.high:
        return OPEN
    up = gap.value > 0
    if not better:
        return "higher" if up else "lower"
    return "better" if up == (better == "higher") else "worse"


def _differs(run: Run, other: Run) -> list[str]:
    """What to keep in mind: all that was asked, met or installed differently, and methods that are not in both."""
    said = []
    for name, (here, there) in _both(_told(run), _told(other)).items():
        if here == there:
            continue
        if name in HASHES:
            said.append(f"The {name} are not the same.")
        else:
            said.append(f"{name[0].upper()}{name[1:]}: {_word(here)} here, {_word(there)} there.")
    if retrained(run, other):
        said.append("The weights are not the same: models were trained for the runs.")
    mine, theirs = run.manifest["methods"], other.manifest["methods"]
    changed = [name for name in mine if name in theirs and mine[name]["key"] != theirs[name]["key"]]
    for text, names in (
        ("Other code or parameters under the same name", changed),
        ("Only here", [name for name in mine if name not in theirs]),
        ("Only there", [name for name in theirs if name not in mine]),
    ):
        if names:
            said.append(f"{text}: {', '.join(names)}.")
    return said or ["The two runs asked for the same, with the same versions of everything."]


def _told(run: Run) -> dict[str, Any]:
    """name -> value; what an audit calls its images by name and by content are two things."""
    manifest = run.manifest
    request = {name.replace("_", " "): value for name, value in manifest["request"].items()}
    request["name of the images"] = request.pop("images", None)
    versions = manifest["versions"] | {"saliometer": manifest["saliometer"]}
    left = {"kind", "pictures", "threads"}
    found = {**request, **manifest["fixed"], **versions}
    return {name: value for name, value in found.items() if name not in left}


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (one.get(name), other.get(name)) for name in {**one, **other}}


def _word(value: Any) -> str:
    if isinstance(value, list):
        return " + ".join(map(_word, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_word(one)}" for name, one in value.items())
    return "not told" if value in (None, "") else str(value)


def _plain_contrast(one: Contrast) -> dict[str, Any]:
    head = one.head
    return {
        "metric": head.metric, "definition": head.definition, "name": head.name, "better": head.better,
        "share": head.share, "paired": one.paired, "images": list(one.images),
        "rows": [
            {
                "method": pair.method, "role": pair.role, "this": _numbers(pair.this), "other": _numbers(pair.other),
                "gap": _numbers(pair.gap), "ranks": [pair.this.rank, pair.other.rank], "verdict": pair.verdict,
            }
            for pair in one.pairs
        ],
    }  # fmt: skip


def _numbers(found: Cell | Estimate) -> list[float | None]:
    return [None if math.isnan(value) else float(value) for value in (found.value, found.low, found.high)]
