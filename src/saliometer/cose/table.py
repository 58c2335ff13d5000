"""Rows of COSE as arrays: one row for each pair of maps, its condition the change, its metric what the prediction did.

A row `cose.unchanged` or `cose.changed` is the similarity of one pair; `cose.correct` says whether the model is right
on the image itself, `cose.grain` how fine the map of the image is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch

from saliometer.cose.operations import GEOMETRIC, OPERATIONS, PHOTOMETRIC, shifts
from saliometer.registry import Spec

UNCHANGED, CHANGED, CORRECT, GRAIN = "cose.unchanged", "cose.changed", "cose.correct", "cose.grain"
FLAT = "a constant map has no grain"  # the note of such a row
RANDOM, CHECKPOINT = "random_model", "checkpoint"
DATA, MODELS = (GEOMETRIC, PHOTOMETRIC), (RANDOM, CHECKPOINT)
GROUPS = (*DATA, *MODELS)
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@lru_cache(maxsize=4096)  # rows have many of the same
def group_of(condition: str) -> str:
    """geometric, photometric, random_model or checkpoint."""
    name = Spec.parse(condition).name
    return OPERATIONS[name].kind if name in OPERATIONS else name


@lru_cache(maxsize=4096)
def unmoved(condition: str) -> bool:
    """Whether it is a translation too small to move a small image by a pixel."""
    params = dict(Spec.parse(condition).params)
    return "side" in params and not bool(shifts(torch.tensor(int(params["bin"])), int(params["side"])))


@lru_cache(maxsize=4096)
def bin_of(condition: str) -> int:
    """The size of a signed operation, 1 to 30; 0 for a change that has none."""
    return abs(int(dict(Spec.parse(condition).params).get("bin", 0)))


@dataclass(frozen=True, eq=False)
class Cell:
    """The pairs of one method in one definition; `changed`, `condition` and `sample` have an entry for each pair."""

    method: str
    definition: str
    changed: Bools
    condition: Codes  # which of the table's conditions
    sample: Codes  # which of its images
    value: Floats
    note: npt.NDArray[Any]
    right: Bools  # by image
    grain: Floats  # by image
    flat: int  # images whose own map is constant

    def sums(self, place: Codes, places: int, counted: Bools, images: int) -> tuple[Floats, Floats]:
        """(places, images) twice: the sums of similarities and the numbers of pairs, of those that count."""
        flat = (place * images + self.sample)[counted]
        size = places * images
        summed: Floats = np.bincount(flat, self.value[counted], size).astype(np.float64)
        number: Floats = np.bincount(flat, minlength=size).astype(np.float64)
        return summed.reshape(places, images), number.reshape(places, images)

    def counted(self, correct_only: bool | None = None) -> Bools:
        """Pairs of images that the model gets right, or all; None is as the mode has it: only `published` asks."""
        mode = dict(Spec.parse(self.definition).params).get("mode")
        only = mode == "published" if correct_only is None else correct_only
        return self.right[self.sample] if only else np.ones(len(self.sample), bool)


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of a table."""

    images: tuple[str, ...]  # in the order in which they were explained
    conditions: tuple[str, ...]
    cells: tuple[Cell, ...]

    def of(self, condition: Any) -> npt.NDArray[Any]:
        """What a function of a condition says of each of them."""
        return np.array([condition(one) for one in self.conditions])


def pairs_of(rows: pa.Table) -> Pairs:
    wanted = pa.array([UNCHANGED, CHANGED, CORRECT, GRAIN])
    held = rows.filter(pc.is_in(rows["metric"].cast(pa.string()), wanted))
    (method, methods), (definition, definitions), (metric, metrics), (sample, samples), (note, notes) = (
        _coded(held[name]) for name in ("method", "definition", "metric", "sample", "note")
    )
    value = held["value"].to_numpy()
    kind = np.array([wanted.to_pylist().index(name) for name in metrics], dtype=np.int64)[metric]
    condition = np.zeros(len(kind), np.int64)
    condition[kind < 2], conditions = _coded(held["condition"].filter(pa.array(kind < 2)))
    order, sample = _ordered(sample, kind)
    texts = np.array(notes, dtype=object)
    found = []
    for place in _cells(method, definition, len(definitions)):
        own, pair = place[kind[place] > 1], place[kind[place] < 2]
        right, size = np.zeros(len(order), bool), np.full(len(order), np.nan)
        correct, fine = own[kind[own] == 2], own[kind[own] == 3]
        right[sample[correct]], size[sample[fine]] = value[correct] == 1, value[fine]
        found.append(
            Cell(
                methods[method[place[0]]], definitions[definition[place[0]]], kind[pair] == 1, condition[pair],
                sample[pair], value[pair], texts[note[pair]], right, size, int((texts[note[fine]] == FLAT).sum()),
            )
        )  # fmt: skip
    return Pairs(tuple(samples[one] for one in order), tuple(conditions), tuple(found))


def _coded(column: pa.ChunkedArray) -> tuple[Codes, list[str]]:
    """Numbers, and the words that they stand for."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    words = whole.dictionary.to_pylist()
    used, codes = np.unique(whole.indices.to_numpy(zero_copy_only=False).astype(np.int64), return_inverse=True)
    return codes, [words[one] for one in used]


def _ordered(sample: Codes, kind: Codes) -> tuple[list[int], Codes]:
    """Images in the order of their own rows, then of their pairs', and each row's place in it."""
    order = list(dict.fromkeys([*sample[kind > 1].tolist(), *sample.tolist()]))
    places = np.zeros(max(order, default=-1) + 1, np.int64)
    places[order] = np.arange(len(order))
    return order, places[sample]


def _cells(method: Codes, definition: Codes, count: int) -> Iterator[Codes]:
    """The rows of each method and definition, in the order in which they first stand there."""
    both = method * max(count, 1) + definition
    names, first = np.unique(both, return_index=True)
    rows = np.argsort(both, kind="stable")
    starts = [*np.searchsorted(both[rows], np.asarray(names)).tolist(), len(rows)]
    for place in np.argsort(first).tolist():
        yield rows[starts[place] : starts[place + 1]]
