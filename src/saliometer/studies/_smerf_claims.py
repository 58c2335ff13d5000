"""What the SMERF paper says of its methods, each claim a small function over rows (smerf.md 7.7)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from saliometer.engine.presets import SMERF
from saliometer.summary import Scores
from saliometer.tasks.textbox import BUCKETS, SETTINGS

REAL = [name for name in SMERF if name not in ("Random", "Edge")]  # the 15 methods
FIGURE_2 = ["G", "SG", "DCN", "GBP", "DT", "IG", "LRP-eps", "DL-RC", "G-CAM", "D-SHAP"]
STRONG = ["I*G", "IG", "LRP-z", "LRP-eps", "LRP-A-beta", "DL-RC", "DL-R"]
WEAK = ["G", "SG", "DCN", "GBP"]
COMPLEX = ["complex-fr", "complex-cr1", "complex-cr2", "complex-cr3", "complex-cr4"]
NOISE = 0.1  # a mean PAFL up to this is not above noise


class Table:
    """Bucket means by the paper's names, in one definition."""

    def __init__(self, rows: pa.Table, definition: str) -> None:
        self.scores = {metric: Scores(rows, metric, definition) for metric in ("pafl", "safl", "piou")}

    def buckets(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> dict[tuple[str, int], float]:
        """(setting, bucket) -> mean, of a group of settings or one, of some buckets or all."""
        scores, chosen = self.scores[metric], set(only)
        place = scores.methods.index(SMERF[method])
        cells = [(i, scores.cells[i][0], int(scores.cells[i][1])) for i in scores.of(group)]
        found = {(s, b): float(scores.means[i, place]) for i, s, b in cells if not chosen or b in chosen}
        return {cell: value for cell, value in found.items() if not np.isnan(value)}

    def mean(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> float:
        values = list(self.buckets(metric, method, group, only).values())
        return float(np.mean(values)) if values else float("nan")

    def least(self, metric: str, method: str, group: str) -> float:
        return min(self.buckets(metric, method, group).values())

    def both(self, method: str, setting: str) -> list[float]:
        """PAFL in the buckets that show a primary and a secondary object."""
        with_secondary = self.buckets("safl", method, setting)
        return [value for cell, value in self.buckets("pafl", method, setting).items() if cell in with_secondary]


@dataclass(frozen=True)
class Verdict:
    holds: bool
    figures: str  # ours


@dataclass(frozen=True)
class Claim:
    number: int
    text: str
    stored: str  # how the authors' own stored numbers stand
    test: Callable[[Table], Verdict]


def _pairs(pairs: dict[str, tuple[float, float]], right: Callable[[float, float], bool], wanted: int = 0) -> Verdict:
    """Whether all (or `wanted`) methods go the way the claim says, and which do not."""
    wrong = {name: pair for name, pair in pairs.items() if not right(*pair)}
    said = "; ".join(f"{name} {a:.2f} to {b:.2f}" for name, (a, b) in wrong.items())
    return Verdict(
        len(pairs) - len(wrong) >= (wanted or len(pairs)),
        f"{len(pairs) - len(wrong)} of {len(pairs)}" + (f"; not {said}" if wrong else ""),
    )


def _each(values: dict[str, float], right: Callable[[float], bool]) -> Verdict:
    wrong = {name: value for name, value in values.items() if not right(value)}
    said = ", ".join(f"{name} {value:.2f}" for name, value in (wrong or values).items())
    return Verdict(not wrong, ("not " if wrong else "") + said)


def _all(*verdicts: Verdict) -> Verdict:
    return Verdict(all(v.holds for v in verdicts), "; ".join(v.figures for v in verdicts))


def _drop(table: Table, metric: str, methods: list[str]) -> dict[str, tuple[float, float]]:
    return {m: (table.mean(metric, m, "simple"), table.mean(metric, m, "complex")) for m in methods}


def claim_2(table: Table) -> Verdict:
    return _pairs(_drop(table, "piou", FIGURE_2), lambda simple, complex_: complex_ < simple)


def claim_3(table: Table) -> Verdict:
    return _pairs(_drop(table, "pafl", REAL), lambda simple, complex_: complex_ < simple)


def claim_4(table: Table) -> Verdict:
    least = {m: (table.least("pafl", m, "simple"), table.least("pafl", m, "complex")) for m in REAL}
    return _pairs(least, lambda simple, complex_: complex_ < simple)


def claim_5(table: Table) -> Verdict:
    return _each({m: table.mean("piou", m, "complex") for m in REAL}, lambda value: value < 0.5)


def claim_6(table: Table) -> Verdict:
    means = {m: table.mean("pafl", m, "simple") for m in STRONG + WEAK}
    return _all(
        _each({m: means[m] for m in STRONG}, lambda value: value > 0.5),
        _each({m: means[m] for m in WEAK}, lambda value: value < 0.2),
    )


def claim_7(table: Table) -> Verdict:
    means = {m: table.mean("pafl", m, "complex") for m in REAL}
    best = max(means, key=lambda m: means[m])
    near = _each({m: means[m] for m in ("IG", "I*G", "LRP-z", "DL-RC", "DL-R")}, lambda v: abs(v - 0.5) <= 0.05)
    return _all(near, Verdict(best == "LRP-eps", f"highest {best} {means[best]:.2f}"))


def claim_8(table: Table) -> Verdict:
    return _pairs(_drop(table, "safl", REAL), lambda simple, complex_: complex_ > simple, wanted=12)


def claim_9(table: Table) -> Verdict:
    def spread(method: str, group: str) -> float:
        return float(np.std(list(table.buckets("pafl", method, group).values())))

    return _pairs({m: (spread(m, "simple"), spread(m, "complex")) for m in STRONG}, lambda one, other: other > one)


def _above_noise(table: Table) -> list[str]:
    return [m for m in REAL if table.mean("pafl", m, "simple") > NOISE]


def claim_10(table: Table) -> Verdict:
    """Present comes first: FR buckets with and without a letter, NR buckets with and without Box1."""
    letter = {n for n, bucket in BUCKETS.items() if bucket.letter}
    box = {n for n, bucket in BUCKETS.items() if bucket.box1}
    pairs = {}
    for m in _above_noise(table):
        for setting, there in (("simple-fr", letter), ("simple-nr", box)):
            absent = set(BUCKETS) - there
            pairs[f"{m} {setting}"] = table.mean("pafl", m, setting, there), table.mean("pafl", m, setting, absent)
    seen = {m: table.mean("safl", m, "simple") for m in _above_noise(table)}
    return _all(_pairs(pairs, lambda there, absent: there < absent), _each(seen, lambda v: v > 0.01))


def _by_objects(table: Table, metric: str, method: str, setting: str) -> list[float]:
    """Means over buckets that show one, two and three objects, one of which decides."""
    count = {n: sum(bucket.present) for n, bucket in BUCKETS.items()}
    deciding = {bucket for _, bucket in table.buckets("pafl", method, setting)}
    shown = [[n for n in deciding if count[n] == objects] for objects in (1, 2, 3)]
    found = [table.mean(metric, method, setting, some) for some in shown if some]
    return [value for value in found if not np.isnan(value)]


def _falls(values: list[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def claim_11(table: Table) -> Verdict:
    wrong, tried = [], 0
    for m in _above_noise(table):
        for setting in ("simple-fr", "simple-nr"):
            primary, secondary = (_by_objects(table, metric, m, setting) for metric in ("pafl", "safl"))
            tried += 1
            if not (_falls(primary) and _falls([-value for value in secondary])):
                wrong.append(f"{m} {setting} {'/'.join(f'{v:.2f}' for v in primary)}")
    return Verdict(not wrong, f"{tried - len(wrong)} of {tried}" + (f"; not {', '.join(wrong)}" if wrong else ""))


def claim_12(table: Table) -> Verdict:
    """The fall from one to three objects, simple-fr, where the oracle's own PIOU does not change with the letter."""
    falls = {}
    for m in STRONG:
        pafl, piou = (_by_objects(table, metric, m, "simple-fr") for metric in ("pafl", "piou"))
        falls[m] = pafl[0] - pafl[-1], piou[0] - piou[-1]
    return _pairs(falls, lambda pafl, piou: piou < pafl / 2)


def claim_13(table: Table) -> Verdict:
    least = {m: min(table.both(m, "simple-fr") + table.both(m, "simple-nr")) for m in REAL}
    passing = [m for m, value in least.items() if value > 0.5]
    shown = ", ".join(f"{m} {least[m]:.2f}" for m in sorted(least, key=lambda m: -least[m])[:4])
    return Verdict(passing == ["DL-R"], shown)


def claim_14(table: Table) -> Verdict:
    return _each({m: max(table.buckets("pafl", m, "simple").values()) for m in WEAK}, lambda value: value <= 0.5)


def claim_15(table: Table) -> Verdict:
    full = [f"{m} {s}" for m in REAL for s in COMPLEX if all(value > 0.5 for value in table.both(m, s))]
    return Verdict(full == ["LRP-eps complex-fr"], ", ".join(full) or "none")


def claim_16(table: Table) -> Verdict:
    letter = {m: table.mean("pafl", m, "complex-cr2", (5, 6)) for m in STRONG}
    boxes = {f"{m} {part}": table.mean("pafl", m, "complex-cr2", part) for m in STRONG for part in ((8, 9), (11, 12))}
    most = sum(value > 0.5 for value in letter.values())
    return _all(
        Verdict(most > len(STRONG) / 2, f"5,6: {most} of {len(STRONG)} above 0.5"), _each(boxes, lambda v: v <= 0.5)
    )


def claim_20(table: Table) -> Verdict:
    simple, complex_ = ([table.mean("pafl", m, g) for m in ("G", "SG")] for g in ("simple", "complex"))
    figures = f"simple {simple[0]:.2f} to {simple[1]:.2f}, complex {complex_[0]:.2f} to {complex_[1]:.2f}"
    return Verdict(simple[1] - simple[0] <= 0.1 and complex_[1] < 0.5 * complex_[0], figures)


def claim_25(table: Table) -> Verdict:
    return _each(
        {f"{m} {g}": table.mean("pafl", m, g) for m in ("Random", "Edge") for g in ("simple", "complex")},
        lambda value: abs(value - 0.05) <= 0.02,
    )


def claim_26(table: Table) -> Verdict:
    product = table.buckets("pafl", "I*G", "all")
    z, path = ([abs(v - product[c]) for c, v in table.buckets("pafl", m, "all").items()] for m in ("LRP-z", "IG"))
    figures = f"LRP-z off by at most {max(z):.1e}; IG by {np.mean(path):.2f} in the mean, {max(path):.2f} at most"
    return Verdict(max(z) < 1e-3 and float(np.mean(path)) < 0.05, figures)


CLAIMS = [
    Claim(2, "Mean PIOU is lower on complex than on simple for the 10 methods of Figure 2", "holds", claim_2),
    Claim(3, "Mean PAFL is lower on complex than on simple for every method", "13 of 15; not G, GBP", claim_3),
    Claim(4, "The lowest bucket's PAFL is lower on complex than on simple for every method", "holds", claim_4),
    Claim(5, "Mean PIOU is below 0.5 on complex for every method", "holds", claim_5),
    Claim(6, "Simple: seven methods above 0.5 in mean PAFL; G, SG, DCN, GBP below 0.2", "holds", claim_6),
    Claim(7, "Complex: IG, I*G, LRP-z, DL narrowly at 0.5 (within 0.05), LRP-eps highest", "holds", claim_7),
    Claim(
        8, "Mean SAFL rises from simple to complex (for 12 of 15 or more)", "12 of 15; not SG, G-CAM, D-SHAP", claim_8
    ),
    Claim(9, "PAFL spreads wider over buckets on complex for the seven strong methods", "holds", claim_9),
    Claim(10, "PAFL is lower where a second object shows; SAFL is not zero", "holds above noise", claim_10),
    Claim(11, "PAFL falls and SAFL rises with the number of objects, simple", "holds above noise", claim_11),
    Claim(12, "That trend is much weaker in PIOU (less than half of it)", "holds", claim_12),
    Claim(13, "DL-R alone passes 0.5 in every simple bucket with both kinds of object", "holds, by 0.005", claim_13),
    Claim(14, "G, SG, DCN, GBP pass 0.5 in no simple bucket", "holds", claim_14),
    Claim(15, "The only full success on a complex setting is LRP-eps on Complex-FR", "consistent", claim_15),
    Claim(16, "CR2: most strong methods pass 0.5 in buckets 5, 6; none in 8, 9 and 11, 12", "holds", claim_16),
    Claim(20, "SmoothGrad gains little over Gradient on simple and halves it on complex", "holds", claim_20),
    Claim(25, "Random and Edge score the area share, about 0.05, everywhere", "holds", claim_25),
    Claim(26, "LRP-z equals I*G, IG nearly so", "holds", claim_26),
]


def claims(rows: pa.Table) -> str:
    """Markdown: each claim, how the authors' numbers stand, and ours in both definitions."""
    missing = set(SETTINGS) - set(rows["setting"].unique().to_pylist())
    if missing:
        raise ValueError(f"claims need all seven settings; the run lacks {', '.join(sorted(missing))}")
    tables = {definition: Table(rows, definition) for definition in ("authors", "clean")}
    lines = ["| # | claim | their numbers | ours, authors' metric | ours, clean |", "|---:|---|---|---|---|"]
    for claim in CLAIMS:
        found = [claim.test(table) for table in tables.values()]
        cells = " | ".join(f"**{'holds' if v.holds else 'fails'}**: {v.figures}" for v in found)
        lines.append(f"| {claim.number} | {claim.text} | {claim.stored} | {cells} |")
    return "\n".join(lines)
