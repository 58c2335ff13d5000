"""What the rows of randomisation tests amount to: similarity along a cascade, its mean, its end, its spread over draws.

The comparison of a map with itself, which is 1, is in none of them.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saliometer.judgement import Column
from saliometer.registry import Spec, metrics
from saliometer.sanity.plan import RANDOMISED

Floats = npt.NDArray[np.float64]
METRICS = ("mprt", "smooth_mprt", "efficient_mprt")
WHOLE = ("top_down", "bottom_up", "full")  # orders that end with all layers drawn anew


@dataclass(frozen=True, eq=False)
class Curve:
    """One method in one definition, stage by stage."""

    metric: str
    method: str
    definition: str
    order: str
    layers: tuple[str, ...]  # the layer that is new at each stage
    images: tuple[str, ...]
    values: Floats  # (images, draws, stages), NaN where undefined
    undefined: dict[str, int]  # reason -> comparisons that have no value

    @property
    def params(self) -> dict[str, Any]:
        return dict(Spec.parse(self.definition).params)

    @property
    def similarity(self) -> str:
        return str(self.params.get("similarity", "entropy"))

    @property
    def means(self) -> Floats:
        """(stages,): over images and draws."""
        return _mean(self.values, (0, 1))

    @property
    def spread(self) -> Floats:
        """(stages,): the standard deviation between draws of the mean over images; NaN with one draw."""
        return _deviation(_mean(self.values, (0,)), 0)

    @property
    def each(self) -> dict[str, Floats]:
        """(images,) for each statistic: the mean of all stages and draws, its spread over draws, the cascade's end."""
        found = {"": _mean(self.values, (1, 2)), "spread": _deviation(_mean(self.values, (2,)), 1)}
        if self.order in WHOLE and self.metric != "efficient_mprt":
            found["full"] = _mean(self.values[:, :, -1], (1,))
        return found

    def as_dict(self) -> dict[str, Any]:
        """For machines; undefined numbers are None."""
        stages = [
            {"stage": number, "layer": layer, "mean": _plain(mean), "spread_of_draws": _plain(spread)}
            for number, (layer, mean, spread) in enumerate(zip(self.layers, self.means, self.spread, strict=True), 1)
        ]
        return {
            "metric": self.metric, "method": self.method, "definition": self.definition, "order": self.order,
            "images": len(self.images), "draws": self.values.shape[1], "stages": stages, "undefined": self.undefined,
        }  # fmt: skip


def curves(rows: pa.Table) -> list[Curve]:
    """Of every method, metric and definition in rows."""
    tests = rows.filter(pc.is_in(rows["metric"].cast(pa.string()), pa.array(METRICS)))
    if not len(tests):
        return []
    codes = {name: _coded(tests[name]) for name in ("metric", "method", "definition", "condition", "sample", "note")}
    stages = [_stage(text) for text in codes["condition"][1]]
    place, images = codes["sample"]
    values, condition = tests["value"].to_numpy(), codes["condition"][0]
    keys = np.stack([codes[name][0] for name in ("metric", "method", "definition")], 1)
    found = []
    for key in dict.fromkeys(map(tuple, keys.tolist())):
        here = (keys == key).all(1)
        known = [stages[code] for code in np.unique(condition[here])]
        layers = {stage["stage"]: str(stage["layer"]) for stage in known}
        draws = np.array([stage["draw"] for stage in stages])[condition[here]]
        numbers = np.array([stage["stage"] - 1 for stage in stages])[condition[here]]
        array = np.full((len(images), 1 + int(draws.max()), len(layers)), np.nan)
        array[place[here], draws, numbers] = values[here]
        notes = codes["note"][0][here & np.isnan(values)]
        why = {codes["note"][1][code] or "undefined": int(count) for code, count in Counter(notes.tolist()).items()}
        metric, method, definition = (
            codes[n][1][c] for n, c in zip(("metric", "method", "definition"), key, strict=True)
        )
        names = tuple(name for _, name in sorted(layers.items()))
        found.append(Curve(metric, method, definition, known[0]["order"], names, tuple(images), array, why))
    return found


def _coded(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A number for each row, in the order in which words come, and the words."""
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()


def _stage(condition: str) -> dict[str, Any]:
    return dict(Spec.parse(condition[condition.index(f"{RANDOMISED}(") :]).params)


def columns(found: Sequence[Curve]) -> list[Column]:
    """Every statistic of every definition, the methods side by side."""
    by: dict[tuple[str, str], list[Curve]] = {}
    for curve in found:
        by.setdefault((curve.metric, curve.definition), []).append(curve)
    several = []
    for (metric, definition), some in by.items():
        each = [curve.each for curve in some]
        for part in each[0]:
            values = np.stack([one[part] for one in each], 1)
            name, methods = f"{metric}.{part}".rstrip("."), tuple(curve.method for curve in some)
            several.append(Column(name, definition, methods, some[0].images, values))
    return several


def reasons(found: Sequence[Curve]) -> list[str]:
    """What a reader must know of comparisons that have no value; similarities that have the same say it once."""
    told: dict[str, list[str]] = {}
    for curve in found:
        for why, count in curve.undefined.items():
            about = f"{curve.metric} {curve.order} of {curve.method}"
            sentence = f"{count} of {curve.values.size} comparisons have no value: {why}"
            told.setdefault(f"{about} ({{}}): {sentence}", []).append(curve.similarity)
    return [sentence.replace("({})", f"({', '.join(dict.fromkeys(kinds))})", 1) for sentence, kinds in told.items()]


def label(metric: str, definition: str) -> str:
    """What tables call a column: the metric, what of it is not as usual, and the similarity."""
    params = dict(Spec.parse(definition).params)
    usual = metrics[metric.partition(".")[0]].parameters
    other = {key: value for key, value in params.items() if key not in ("similarity", "draws") and value != usual[key]}
    words = [str(value) if key == "order" else f"{key}={value}" for key, value in other.items()]
    return " ".join([metric, *words, *([str(params["similarity"])] if "similarity" in params else [])])


def sentences(found: Sequence[Curve]) -> list[str]:
    """What the numbers rest on, and how they must not be read."""
    said = []
    for metric in dict.fromkeys(curve.metric for curve in found):
        curve = next(one for one in found if one.metric == metric)
        draws, count = curve.values.shape[1:]
        what = f"{count} stages" if count > 1 else "all layers at once"
        said.append(f"{metric}: {what}, {draws} draws of each, the map's comparison with itself left out.")
    if said:
        said.append(
            "Neither end of the randomisation tests is good: noise (random) changes most and edges (edge) never, "
            "and both explain nothing. So methods are not ranked by them; docs/sanity.md says what to do instead."
        )
    return said


def _mean(values: Floats, axis: tuple[int, ...]) -> Floats:
    """Of what is defined; NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Floats = np.nanmean(values, axis=axis)
    return found


def _deviation(values: Floats, axis: int) -> Floats:
    """Of a sample; NaN where there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Floats = np.nanstd(values, axis=axis, ddof=1)
    return found


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
