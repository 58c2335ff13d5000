"""What an audit's rows say: means over images with 95 % intervals, ranks with ties, and who beats the controls.

Intervals come from 10,000 bootstrap resamples of the images, the same for every method and metric, so that differences
are paired. A value that is undefined (NaN) counts for nobody; how many there are is told.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from saliometer import registry
from saliometer.registry import Entry
from saliometer.seeds import fork
from saliometer.summary import Estimate, tied_ranks

RESAMPLES = 10_000
FEW = 10  # images, below which nothing is settled
FLOORS = ("random", "edge", "centre")  # controls that never see the model, and that an explanation should beat
FIDELITY, ROBUSTNESS, COMPLEXITY, LOCATION, PROMISE = "fidelity", "robustness", "complexity", "location", "promise"
CHANGE, RANDOMISATION = "change", "randomisation"
BESIDE = ("chance", "consistency", "sensitivity", "discrimination", "full")  # parts that no value is read without
KINDS = {
    FIDELITY: "does the score follow what the map marks",
    LOCATION: "does the map mark the object",
    ROBUSTNESS: "does the map stay when the image hardly changes",
    CHANGE: "does the map stay when the prediction stays, and move when it moves",
    RANDOMISATION: "how alike does the map stay when layers are drawn anew; neither end is good",
    COMPLEXITY: "how much of the image does the map mark",
    PROMISE: "does the map keep what its method promises",
}
Floats = npt.NDArray[np.float64]


def kind_of(metric: str) -> str:
    """Which of the KINDS a metric is; '' for rows that are no metric."""
    entry = _entry(metric)
    if entry is None:
        return PROMISE if metric == "residual" else ""
    if entry.facts.randomises:
        return RANDOMISATION
    if entry.facts.pairs:
        return CHANGE
    if entry.facts.needs_truth:
        return LOCATION
    if entry.facts.reexplains:
        return ROBUSTNESS
    if entry.facts.descriptive:
        return ""
    if entry.name == "completeness":
        return PROMISE
    return COMPLEXITY if entry.name in ("sparseness", "complexity", "effective_complexity") else FIDELITY


def better(metric: str, definition: str = "") -> str:
    """'higher' or 'lower', or '' for a part that says nothing of how good a map is."""
    entry = _entry(metric)
    if entry is None:
        return "lower"
    if entry.facts.randomises:
        return ""  # noise has one end, edges the other
    part = metric.partition(".")[2]
    if part:
        return entry.facts.parts[part]
    if _is_set(entry.facts.turned, definition):
        return "lower" if entry.facts.better == "higher" else "higher"
    return entry.facts.better


def shown(metric: str) -> bool:
    """Whether tables show it: a metric's own value, and what has to stand beside it."""
    return "." not in metric or metric.partition(".")[2] in BESIDE


def is_share(metric: str, definition: str = "") -> bool:
    """Whether its values are fractions, which tables print times 100."""
    entry = _entry(metric)
    if metric == "completeness.passed" or (entry is not None and entry.facts.pairs and not entry.facts.randomises):
        return True
    if entry is None or _is_set(entry.facts.beyond, definition):
        return False
    low, high = entry.facts.bounds
    if low < 0 or high > 1:
        return False
    return metric.partition(".")[2] not in ("spread", "residual", "unscaled")


def number(metric: str, value: float, definition: str = "") -> str:
    """As tables print it."""
    if kind_of(metric) == RANDOMISATION:
        return "-" if math.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00")
    return printed(value, is_share(metric, definition))


def printed(value: float, share: bool) -> str:
    """Fractions times 100, other numbers as they are, a dash where it is undefined."""
    if math.isnan(value):
        return "-"
    if share:
        return f"{100 * value:.1f}".replace("-0.0", "0.0")
    if abs(value) < 5e-4:
        return "0"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _is_set(words: Sequence[str], definition: str) -> bool:
    """Whether one of some settings is among a definition's."""
    return any(word in definition.partition("(")[2].rstrip(")").split(",") for word in words)


def _entry(metric: str) -> Entry | None:
    name = metric.partition(".")[0]
    return registry.metrics[name] if name in registry.metrics else None  # noqa: SIM401 (a family has no such get)


@dataclass(frozen=True, eq=False)
class Column:
    """One metric in one definition: the values of every method on every image."""

    metric: str
    definition: str
    methods: tuple[str, ...]
    images: tuple[str, ...]
    values: Floats  # (images, methods), NaN where undefined

    @property
    def sign(self) -> int:
        return -1 if self.better == "lower" else 1

    @property
    def better(self) -> str:
        return better(self.metric, self.definition)

    @cached_property
    def means(self) -> Floats:
        found: Floats = _weighted(np.ones((1, len(self.images))), self.values)[0]
        return found

    @cached_property
    def resampled(self) -> Floats:
        """(resamples, methods)."""
        return _weighted(drawn(len(self.images)), self.values)

    def only(self, images: Sequence[str]) -> "Column":
        """The same on some of the images, in that order."""
        places = [self.images.index(image) for image in images]
        return Column(self.metric, self.definition, self.methods, tuple(images), self.values[places])

    def undefined(self, method: str) -> int:
        return int(np.isnan(self.values[:, self.methods.index(method)]).sum())

    def estimate(self, method: str) -> Estimate:
        place = self.methods.index(method)
        return interval(self.means[place], self.resampled[:, place], len(self.images) - self.undefined(method))

    def difference(self, one: str, other: str) -> Estimate:
        """The paired difference of two methods' means, where both are defined; above 0 if `one` is better."""
        if (one, other) not in self._intervals:
            found, place = self._against(other), self.methods.index(one)
            self._intervals[one, other] = interval(found[0][place], found[1][:, place], int(found[2][place]))
        return self._intervals[one, other]

    @cached_property
    def _intervals(self) -> dict[tuple[str, str], Estimate]:
        return {}

    def _against(self, other: str) -> tuple[Floats, Floats, Floats]:
        """Every method's difference to one: means, (resamples, methods), and how many images have it."""
        if other not in self._differences:
            place = [self.methods.index(other)]
            gaps = self.sign * (self.values - self.values[:, place])
            mean = _weighted(np.ones((1, len(self.images))), gaps)[0]
            counts = (~np.isnan(gaps)).sum(0).astype(np.float64)
            if np.isnan(gaps).any():
                resampled = _weighted(drawn(len(self.images)), gaps)
            else:  # all on the same images: a difference of means is the mean difference
                resampled = self.sign * (self.resampled - self.resampled[:, place])
            self._differences[other] = mean, resampled, counts
        return self._differences[other]

    @cached_property
    def _differences(self) -> dict[str, tuple[Floats, Floats, Floats]]:
        return {}

    def beats(self, one: str, other: str) -> bool:
        gap = self.difference(one, other)
        return gap.low > 0 if not np.isnan(gap.low) else False

    def wins(self, one: str, other: str) -> Estimate:
        """The chance that `one` scores better than `other` on the same image; ties count half."""
        pair = self.values[:, [self.methods.index(one), self.methods.index(other)]]
        gaps = self.sign * (pair[:, 0] - pair[:, 1])
        won = np.where(np.isnan(gaps), np.nan, (gaps > 0) + 0.5 * (gaps == 0))[:, None]
        mean, resampled = (_weighted(weights, won)[:, 0] for weights in (np.ones((1, len(won))), drawn(len(won))))
        return interval(mean[0], resampled, int((~np.isnan(won)).sum()))

    def ranks(self, methods: Sequence[str]) -> dict[str, int]:
        """Best first; a method shares the rank of its group's leader where their paired interval holds 0."""
        if not self.better:
            return {}
        known = [m for m in methods if m in self.methods and not np.isnan(self.means[self.methods.index(m)])]
        order = sorted(known, key=lambda m: (-self.sign * self.means[self.methods.index(m)], m))
        return tied_ranks(order, self.difference)


def columns(rows: pa.Table, metrics: Iterable[str] = (), *, condition: str = "", target: str = "") -> list[Column]:
    """Every metric and definition of an audit's rows, in the order in which they stand there."""
    costs = [name for name in rows["metric"].unique().to_pylist() if name.startswith("cost.")]
    chosen_rows = (pc.field("condition") == condition) & ~pc.field("metric").isin(pa.array(costs, pa.string()))
    wanted = rows.filter(chosen_rows & (pc.field("target") == target) if target else chosen_rows)
    given = {name: wanted[name].to_pylist() for name in ("metric", "definition", "method", "sample")}
    values = wanted["value"].to_numpy()
    chosen = set(metrics)
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for metric, definition, method, sample, value in zip(*given.values(), values, strict=True):
        if not chosen or metric in chosen:
            cells.setdefault((metric, definition), {})[sample, method] = value
    images = tuple(dict.fromkeys(given["sample"]))
    found = []
    for (metric, definition), held in cells.items():
        methods = tuple(dict.fromkeys(method for _, method in held))
        array = np.array([[held.get((image, method), np.nan) for method in methods] for image in images], float)
        found.append(Column(metric, definition, methods, images, array.reshape(len(images), len(methods))))
    return found


def interval(value: float, resampled: Floats, count: int) -> Estimate:
    """Undefined (NaN) for one image, which cannot be resampled."""
    known = resampled[~np.isnan(resampled)]
    if count < 2 or not len(known):
        return Estimate(float(value), np.nan, np.nan)
    low, high = np.percentile(known, [2.5, 97.5])
    return Estimate(float(value), float(low), float(high))


@lru_cache(maxsize=4)
def drawn(count: int) -> Floats:
    """(resamples, images): how often each image is drawn."""
    rng = np.random.default_rng(fork("bootstrap over images", count))
    resamples = RESAMPLES if count <= 2000 else max(1000, RESAMPLES * 2000 // count)  # memory grows with both
    return rng.multinomial(count, np.full(count, 1 / count), resamples).astype(np.float64)


def _weighted(weights: Floats, values: Floats) -> Floats:
    """Means of the defined values; NaN where there is none."""
    known = ~np.isnan(values)
    found: Floats
    if known.all():
        found = (weights @ values) / weights.sum(1, keepdims=True)
        return found
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (weights @ np.where(known, values, 0)) / (weights @ known.astype(np.float64))
    return found


@dataclass(frozen=True)
class Holding:
    """How a method stands against the controls on the metrics of fidelity and location."""

    method: str
    beaten: tuple[str, ...]  # metrics on which it is better than every floor
    lost: tuple[str, ...]  # metrics on which some floor is better
    rank: float  # mean over these metrics
    void: tuple[str, ...] = ()  # metrics on which it has no value for any image

    @property
    def score(self) -> tuple[int, int]:
        """Less is better; methods with the same share a rank."""
        return -len(self.beaten), len(self.lost) + len(self.void)

    @property
    def silent(self) -> bool:
        """Whether there is nothing to rank it by."""
        return bool(self.void) and math.isnan(self.rank)


def judged_by(found: Sequence[Column]) -> list[Column]:
    """The metrics of fidelity and location, each in the first of its definitions."""
    first: dict[str, Column] = {}
    for column in found:
        if judging(column.metric):
            first.setdefault(column.metric, column)
    return list(first.values())


def stands(column: Column, method: str, controls: Sequence[str]) -> str:
    """'above' every floor, 'below' one of them, or '': where fidelity or location is judged, and for no control."""
    floors = [c for c in FLOORS if c in controls and c in column.methods]
    if method in controls or method not in column.methods or not floors or not judging(column.metric):
        return ""
    if all(column.beats(method, floor) for floor in floors):
        return "above"
    return "below" if any(column.beats(floor, method) for floor in floors) else ""


def judging(metric: str) -> bool:
    """Whether a verdict rests on it."""
    return kind_of(metric) in (FIDELITY, LOCATION) and "." not in metric


def holdings(found: Sequence[Column], methods: Sequence[str], controls: Sequence[str]) -> list[Holding]:
    """The methods that explain, best first: by metrics on which they beat every floor, then by mean rank."""
    judged, held = judged_by(found), []
    placed = [column.ranks([m for m in methods if m in column.methods]) for column in judged]
    for method in methods:
        beaten, lost, ranks, void = [], [], [], []
        for column, places in zip(judged, placed, strict=True):
            if method not in column.methods or not any(c in column.methods for c in FLOORS if c in controls):
                continue
            if math.isnan(column.estimate(method).value):
                void.append(column.metric)
                continue
            place = stands(column, method, controls)
            beaten += [column.metric] * (place == "above")
            lost += [column.metric] * (place == "below")
            ranks.append(places.get(method, len(methods)))
        mean = float(np.mean(ranks)) if ranks else float("nan")
        held.append(
            Holding(method, tuple(dict.fromkeys(beaten)), tuple(dict.fromkeys(lost)), mean, tuple(dict.fromkeys(void)))
        )
    return sorted(held, key=lambda h: (h.silent, h.score, math.inf if math.isnan(h.rank) else h.rank, h.method))


def places(held: Sequence[Holding]) -> dict[str, str]:
    """method -> its rank, `2=` where it is shared; none for those that have no value."""
    scores = [one.score for one in held if not one.silent]
    ranks = {score: 1 + sum(other < score for other in scores) for score in scores}
    return {
        one.method: f"{ranks[one.score]}{'=' * (scores.count(one.score) > 1)}" for one in held if not one.silent
    }  # fmt: skip


def sentences(found: Sequence[Column], methods: Sequence[str], controls: Sequence[str]) -> list[str]:
    """The verdict in plain words."""
    held, judged = holdings(found, methods, controls), judged_by(found)
    if not judged:
        return ["No metric of fidelity was asked for, so nothing can be said of which method to trust."]
    if not held:
        return ["Only controls have scores, so there is no method to judge."]
    if all(np.isnan(column.values).all() for column in judged):
        return ["No metric of fidelity has a value for any image, so nothing can be said: see the warnings."]
    count = len({c.metric for c in judged})
    silent = [h.method for h in held if h.silent]
    held = [h for h in held if not h.silent]
    if not held:
        return [f"{listed(silent)} {'has' if len(silent) == 1 else 'have'} no value on any metric: see the warnings."]
    best = [h for h in held if h.score == held[0].score]
    floors = listed([c for c in FLOORS if c in controls and any(c in column.methods for column in judged)])
    kinds = " and ".join(kind for kind in KINDS if any(kind_of(c.metric) == kind for c in judged))
    metrics = f"{count} metric{'s' * (count > 1)} of {kinds}"
    if not floors:
        return ["No control has scores, so nothing can be said of which method to trust."]
    if not held[0].beaten:
        which = f"any of {metrics}" if count > 1 else f"the one metric of {kinds}"
        said = [f"No method is better than the controls ({floors}) on {which}."]
    else:
        names = listed([h.method for h in best], most=4)
        verb = "holds" if len(best) == 1 else "hold"
        said = [
            f"{names} {verb} up best: better than every control that never sees the model ({floors}) on "
            f"{len(held[0].beaten)} of {metrics}."
        ]
    if level := [h for h in held if h.beaten and h not in best and len(h.beaten) == len(best[0].beaten)]:
        verbs = ("beats", "loses") if len(level) == 1 else ("beat", "lose")
        said.append(f"{listed([h.method for h in level])} {verbs[0]} them on as many, but {verbs[1]} to one on more.")
    if fewer := [h for h in held if 0 < len(h.beaten) < len(best[0].beaten)]:
        counts = sorted({len(h.beaten) for h in fewer})
        verb = "beats" if len(fewer) == 1 else "beat"
        said.append(f"{listed([h.method for h in fewer])} {verb} them on {_span(counts)}.")
    bad = [h.method for h in held if not h.beaten]
    if bad and held[0].beaten:
        said.append(f"{listed(bad)} {'beats' if len(bad) == 1 else 'beat'} them on none.")
    if silent:
        verb = "has" if len(silent) == 1 else "have"
        said.append(f"{listed(silent)} {verb} no value on any of them and no rank: see the warnings.")
    fooled = [c.metric for c in judged if "fake_cam" in c.methods and _leads(c, "fake_cam")]
    if fooled:
        led = list(dict.fromkeys(fooled))
        said.append(
            f"On {listed(led)} the control fake_cam, which marks everything, comes first: do not judge by "
            f"{'it' if len(led) == 1 else 'them'} alone."
        )
    if (images := len(judged[0].images)) < FEW:
        said.append(f"{images} image{'s are' if images > 1 else ' is'} few: this is a first look, no verdict.")
    return said


def _leads(column: Column, method: str) -> bool:
    """Whether it comes first; a mask of ones, which is no map, is left aside."""
    scores = np.where([one == "all_ones" for one in column.methods], np.nan, column.sign * column.means)
    return bool(column.methods[int(np.nanargmax(scores))] == method) if not np.isnan(scores).all() else False


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def listed(names: Sequence[str], most: int = 99) -> str:
    """In a sentence; of more than `most` the last ones are counted."""
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


@dataclass(frozen=True)
class Move:
    """How one definition of a metric orders methods, beside the metric's first definition."""

    metric: str
    definition: str
    ranks: dict[str, float]  # method -> place by mean, ties averaged
    agreement: float  # Spearman with the first definition


def moves(found: Sequence[Column]) -> list[Move]:
    """For every metric that has several definitions, and a better end: the order of methods under each."""
    by_metric: dict[str, list[Column]] = {}
    for column in found:
        by_metric.setdefault(column.metric, []).append(column)
    told = []
    for some in by_metric.values():
        if len(some) < 2 or not some[0].better:
            continue
        common = [m for m in some[0].methods if all(m in c.methods for c in some)]
        first: Floats | None = None
        for column in some:
            scores = np.array([-column.sign * column.means[column.methods.index(m)] for m in common])
            places = average_ranks(scores)
            first = places if first is None else first
            told.append(
                Move(
                    column.metric,
                    column.definition,
                    dict(zip(common, places.tolist(), strict=True)),
                    correlation(first, places),
                )
            )
    return told


def average_ranks(values: Floats) -> Floats:
    """1 for the smallest; equal values share the mean of their places, NaN stays NaN."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, nan_policy="omit"), dtype=np.float64)


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's, over pairs that are defined; NaN where there is no spread."""
    known = ~(np.isnan(one) | np.isnan(other))
    a, b = one[known], other[known]
    if len(a) < 2 or a.std() == 0 or b.std() == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])
