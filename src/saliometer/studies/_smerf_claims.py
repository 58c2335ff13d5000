"""What the SMERF paper says of its methods, each claim a small function over rows (smerf.md 7.7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.engine.presets import SMERF
from saliometer.studies._claims import Claim, Finding, MissingError
from saliometer.summary import Scores
from saliometer.tasks.textbox import BUCKETS, SETTINGS, reasonings

CONTROLS = ["Random", "Edge"]
REAL = [name for name in SMERF if name not in CONTROLS]  # the 15 methods
FIGURE_2 = ["G", "SG", "DCN", "GBP", "DT", "IG", "LRP-eps", "DL-RC", "G-CAM", "D-SHAP"]
STRONG = ["I*G", "IG", "LRP-z", "LRP-eps", "LRP-A-beta", "DL-RC", "DL-R"]
WEAK = ["G", "SG", "DCN", "GBP"]
COMPLEX = ["complex-fr", "complex-cr1", "complex-cr2", "complex-cr3", "complex-cr4"]
DEFINITIONS = ("clean", "authors")  # the first that a run holds decides
WORDS = {True: "holds", False: "fails", None: "open"}
NOISE = 0.1  # a mean PAFL up to this is not above noise


class Table:
    """Bucket means by the paper's names, in one definition."""

    def __init__(self, rows: pa.Table, definition: str) -> None:
        self.scores = {metric: Scores(rows, metric, definition) for metric in ("pafl", "safl", "piou")}

    def buckets(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> dict[tuple[str, int], float]:
        """(setting, bucket) -> mean, of a group of settings or one, of some buckets or all."""
        scores, chosen = self.scores[metric], set(only)
        if SMERF[method] not in scores.methods:
            raise MissingError(f"the run has no {metric.upper()} of {SMERF[method]}")
        place = scores.methods.index(SMERF[method])
        settings = [setting for setting in SETTINGS if group == "all" or setting.startswith(group)]
        if missing := [setting for setting in settings if not scores.of(setting)]:
            raise MissingError(f"the run lacks {', '.join(missing)}")
        return {
            (setting, bucket): self._value(scores, place, setting, bucket)
            for setting in settings
            for bucket in _scored(metric, setting)
            if not chosen or bucket in chosen
        }

    def _value(self, scores: Scores, place: int, setting: str, bucket: int) -> float:
        cell = setting, str(bucket)
        value = float(scores.means[scores.cells.index(cell), place]) if cell in scores.values else float("nan")
        if np.isnan(value):
            raise MissingError(f"{scores.methods[place]} has no {scores.metric.upper()} in {setting}, bucket {bucket}")
        return value

    def mean(self, metric: str, method: str, group: str, only: Iterable[int] = ()) -> float:
        return float(np.mean(list(self.buckets(metric, method, group, only).values())))

    def least(self, metric: str, method: str, group: str) -> float:
        return min(self.buckets(metric, method, group).values())

    def both(self, method: str, setting: str) -> list[float]:
        """PAFL in the buckets that show a primary and a secondary object."""
        with_secondary = self.buckets("safl", method, setting)
        return [value for cell, value in self.buckets("pafl", method, setting).items() if cell in with_secondary]


def _scored(metric: str, setting: str) -> list[int]:
    """Buckets with an object that decides, or for SAFL with one that plays no part."""
    found = []
    for number, said in reasonings(setting).items():
        shown = {place for place, there in enumerate(BUCKETS[number].present) if there}
        if (shown - said.primary - said.neither) if metric == "safl" else said.primary:
            found.append(number)
    return found


@dataclass(frozen=True)
class Smerf(Claim[Table]):
    status: str = ""  # how the authors' own stored numbers stand
    methods: Sequence[str] = ()  # those it is about

    def under(self, table: Table) -> dict[str, Any]:
        missing = [SMERF[name] for name in self.methods if SMERF[name] not in table.scores["pafl"].methods]
        if missing:
            return {"ours": "", "holds": None, "why": f"the run lacks {', '.join(missing)}"}
        return self.judged(table)


def _pairs(pairs: dict[str, tuple[float, float]], right: Callable[[float, float], bool], wanted: int = 0) -> Finding:
    """Whether all (or `wanted`) methods go the way the claim says, and which do not."""
    wrong = {name: pair for name, pair in pairs.items() if not right(*pair)}
    said = "; ".join(f"{name} {a:.2f} to {b:.2f}" for name, (a, b) in wrong.items())
    right_ones = len(pairs) - len(wrong)
    figures = f"{right_ones} of {len(pairs)}" + (f"; not {said}" if wrong else "")
    return Finding(figures, right_ones >= (wanted or len(pairs)))


def _each(values: dict[str, float], right: Callable[[float], bool]) -> Finding:
    wrong = {name: value for name, value in values.items() if not right(value)}
    said = ", ".join(f"{name} {value:.2f}" for name, value in (wrong or values).items())
    return Finding(("not " if wrong else "") + said, not wrong)


def _all(*findings: Finding) -> Finding:
    return Finding("; ".join(one.ours for one in findings), all(one.holds for one in findings))


def _drop(table: Table, metric: str, methods: list[str]) -> dict[str, tuple[float, float]]:
    return {m: (table.mean(metric, m, "simple"), table.mean(metric, m, "complex")) for m in methods}


def claim_2(table: Table) -> Finding:
    return _pairs(_drop(table, "piou", FIGURE_2), lambda simple, complex_: complex_ < simple)


def claim_3(table: Table) -> Finding:
    return _pairs(_drop(table, "pafl", REAL), lambda simple, complex_: complex_ < simple)


def claim_4(table: Table) -> Finding:
    least = {m: (table.least("pafl", m, "simple"), table.least("pafl", m, "complex")) for m in REAL}
    return _pairs(least, lambda simple, complex_: complex_ < simple)


def claim_5(table: Table) -> Finding:
    return _each({m: table.mean("piou", m, "complex") for m in REAL}, lambda value: value < 0.5)


def claim_6(table: Table) -> Finding:
    means = {m: table.mean("pafl", m, "simple") for m in STRONG + WEAK}
    return _all(
        _each({m: means[m] for m in STRONG}, lambda value: value > 0.5),
        _each({m: means[m] for m in WEAK}, lambda value: value < 0.2),
    )


def claim_7(table: Table) -> Finding:
    means = {m: table.mean("pafl", m, "complex") for m in REAL}
    best = max(means, key=lambda m: means[m])
    near = _each({m: means[m] for m in ("IG", "I*G", "LRP-z", "DL-RC", "DL-R")}, lambda v: abs(v - 0.5) <= 0.05)
    return _all(near, Finding(f"highest {best} {means[best]:.2f}", best == "LRP-eps"))


def claim_8(table: Table) -> Finding:
    return _pairs(_drop(table, "safl", REAL), lambda simple, complex_: complex_ > simple, wanted=12)


def claim_9(table: Table) -> Finding:
    def spread(method: str, group: str) -> float:
        return float(np.std(list(table.buckets("pafl", method, group).values())))

    return _pairs({m: (spread(m, "simple"), spread(m, "complex")) for m in STRONG}, lambda one, other: other > one)


def _above_noise(table: Table) -> list[str]:
    return [m for m in REAL if table.mean("pafl", m, "simple") > NOISE]


def claim_10(table: Table) -> Finding:
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
    """Means over buckets that show one, two and three objects, one of which decides; no SAFL where it stands alone."""
    deciding = {bucket for _, bucket in table.buckets("pafl", method, setting)}
    measured = table.buckets(metric, method, setting)
    found = []
    for objects in (1, 2, 3):
        some = [v for (_, n), v in measured.items() if n in deciding and sum(BUCKETS[n].present) == objects]
        found += [float(np.mean(some))] if some else []
    return found


def _falls(values: list[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def claim_11(table: Table) -> Finding:
    wrong, tried = [], 0
    for m in _above_noise(table):
        for setting in ("simple-fr", "simple-nr"):
            primary, secondary = (_by_objects(table, metric, m, setting) for metric in ("pafl", "safl"))
            tried += 1
            if not (_falls(primary) and _falls([-value for value in secondary])):
                wrong.append(f"{m} {setting} {'/'.join(f'{v:.2f}' for v in primary)}")
    return Finding(f"{tried - len(wrong)} of {tried}" + (f"; not {', '.join(wrong)}" if wrong else ""), not wrong)


def claim_12(table: Table) -> Finding:
    """The fall from one to three objects, simple-fr, where the oracle's own PIOU does not change with the letter."""
    falls = {}
    for m in STRONG:
        pafl, piou = (_by_objects(table, metric, m, "simple-fr") for metric in ("pafl", "piou"))
        falls[m] = pafl[0] - pafl[-1], piou[0] - piou[-1]
    return _pairs(falls, lambda pafl, piou: piou < pafl / 2)


def claim_13(table: Table) -> Finding:
    least = {m: min(table.both(m, "simple-fr") + table.both(m, "simple-nr")) for m in REAL}
    passing = [m for m, value in least.items() if value > 0.5]
    shown = ", ".join(f"{m} {least[m]:.2f}" for m in sorted(least, key=lambda m: -least[m])[:4])
    return Finding(shown, passing == ["DL-R"])


def claim_14(table: Table) -> Finding:
    return _each({m: max(table.buckets("pafl", m, "simple").values()) for m in WEAK}, lambda value: value <= 0.5)


def claim_15(table: Table) -> Finding:
    full = [f"{m} {s}" for m in REAL for s in COMPLEX if all(value > 0.5 for value in table.both(m, s))]
    return Finding(", ".join(full) or "none", full == ["LRP-eps complex-fr"])


def claim_16(table: Table) -> Finding:
    letter = {m: table.mean("pafl", m, "complex-cr2", (5, 6)) for m in STRONG}
    boxes = {f"{m} {part}": table.mean("pafl", m, "complex-cr2", part) for m in STRONG for part in ((8, 9), (11, 12))}
    most = sum(value > 0.5 for value in letter.values())
    return _all(
        Finding(f"5,6: {most} of {len(STRONG)} above 0.5", most > len(STRONG) / 2), _each(boxes, lambda v: v <= 0.5)
    )


def claim_20(table: Table) -> Finding:
    simple, complex_ = ([table.mean("pafl", m, g) for m in ("G", "SG")] for g in ("simple", "complex"))
    figures = f"simple {simple[0]:.2f} to {simple[1]:.2f}, complex {complex_[0]:.2f} to {complex_[1]:.2f}"
    return Finding(figures, simple[1] - simple[0] <= 0.1 and complex_[1] < 0.5 * complex_[0])


def claim_25(table: Table) -> Finding:
    return _each(
        {f"{m} {g}": table.mean("pafl", m, g) for m in ("Random", "Edge") for g in ("simple", "complex")},
        lambda value: abs(value - 0.05) <= 0.02,
    )


def claim_26(table: Table) -> Finding:
    product = table.buckets("pafl", "I*G", "all")
    z, path = ([abs(v - product[c]) for c, v in table.buckets("pafl", m, "all").items()] for m in ("LRP-z", "IG"))
    figures = f"LRP-z off by at most {max(z):.1e}; IG by {np.mean(path):.2f} in the mean, {max(path):.2f} at most"
    return Finding(figures, max(z) < 1e-3 and float(np.mean(path)) < 0.05)


CLAIMS = [
    Smerf(
        2, "Mean PIOU is lower on complex than on simple for the 10 methods of Figure 2", "IG 0.565 to 0.36", claim_2,
        "smerf_2", "holds", FIGURE_2,
    ),
    Smerf(
        3, "Mean PAFL is lower on complex than on simple for every method", "IG 0.63 to 0.50", claim_3,
        "smerf_8a", "13 of 15; not G, GBP", REAL,
    ),
    Smerf(
        4, "The lowest bucket's PAFL is lower on complex than on simple for every method", "IG 0.43 to at most 0.05",
        claim_4, "smerf_8b", "holds", REAL,
    ),
    Smerf(
        5, "Mean PIOU is below 0.5 on complex for every method", "at most 0.44 (DL-RC)", claim_5, "smerf_2", "holds",
        REAL,
    ),
    Smerf(
        6, "Simple: seven methods above 0.5 in mean PAFL; G, SG, DCN, GBP below 0.2", "0.59 to 0.71; 0.07 to 0.155",
        claim_6, "smerf_6a", "holds", [*STRONG, *WEAK],
    ),
    Smerf(
        7, "Complex: IG, I*G, LRP-z, DL narrowly at 0.5 (within 0.05), LRP-eps highest", "0.50; LRP-eps 0.555",
        claim_7, "smerf_8a", "holds", REAL,
    ),
    Smerf(
        8, "Mean SAFL rises from simple to complex (for 12 of 15 or more)", "IG 0.39 to 0.50", claim_8,
        "smerf_8a", "12 of 15; not SG, G-CAM, D-SHAP", REAL,
    ),
    Smerf(
        9, "PAFL spreads wider over buckets on complex for the seven strong methods",
        "IG: standard deviation 0.16 to 0.25", claim_9, "smerf_8a", "holds", STRONG,
    ),
    Smerf(
        10, "PAFL is lower where a second object shows; SAFL is not zero", "IG 0.70 to 0.46 with a letter", claim_10,
        "smerf_6a", "holds above noise", REAL,
    ),
    Smerf(
        11, "PAFL falls and SAFL rises with the number of objects, simple", "IG 0.74, 0.54, 0.45 on simple-fr",
        claim_11, "smerf_6b", "holds above noise", REAL,
    ),
    Smerf(
        12, "That trend is much weaker in PIOU (less than half of it)", "I*G 0.80, 0.74, 0.71 on simple-fr", claim_12,
        "smerf_6b", "holds", STRONG,
    ),
    Smerf(
        13, "DL-R alone passes 0.5 in every simple bucket with both kinds of object", "DL-R 0.505, LRP-eps 0.495",
        claim_13, "smerf_7", "holds, by 0.005", REAL,
    ),
    Smerf(14, "G, SG, DCN, GBP pass 0.5 in no simple bucket", "", claim_14, "smerf_7", "holds", WEAK),
    Smerf(
        15, "The only full success on a complex setting is LRP-eps on Complex-FR", "LRP-eps 0.64", claim_15,
        "smerf_7", "consistent", REAL,
    ),
    Smerf(
        16, "CR2: most strong methods pass 0.5 in buckets 5, 6; none in 8, 9 and 11, 12", "IG 0.63; 0.25 and 0.29",
        claim_16, "smerf_8a", "holds", STRONG,
    ),
    Smerf(
        20, "SmoothGrad gains little over Gradient on simple and halves it on complex",
        "simple 0.11 to 0.155, complex 0.125 to 0.045", claim_20, "smerf_8a", "holds", ["G", "SG"],
    ),
    Smerf(
        25, "Random and Edge score the area share, about 0.05, everywhere", "0.045 to 0.05", claim_25, "smerf_8a",
        "holds", CONTROLS,
    ),
    Smerf(
        26, "LRP-z equals I*G, IG nearly so", "all 0.63 simple, 0.50 complex", claim_26, "smerf_8a", "holds",
        ["I*G", "LRP-z", "IG"],
    ),
]  # fmt: skip


def judged(rows: pa.Table) -> list[dict[str, Any]]:
    """Every claim under the definitions the run holds; the first of them decides, what is missing leaves it open."""
    there = rows["definition"].unique().to_pylist()
    tables = {definition: Table(rows, definition) for definition in DEFINITIONS if definition in there}
    return [_joined(claim, {name: claim.under(table) for name, table in tables.items()}) for claim in CLAIMS]


def _joined(claim: Smerf, found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    known = {name: one for name, one in found.items() if one["holds"] is not None}
    first = next(iter((known or found).values()), {"holds": None, "why": f"the run has no {' or '.join(DEFINITIONS)}"})
    return {
        "id": claim.number, "text": claim.text, "paper": claim.paper, "status": claim.status, "figure": claim.figure,
        "ours": "; ".join(f"{name}: {WORDS[one['holds']]}, {one['ours']}" for name, one in known.items()),
        "holds": first["holds"], "why": first["why"],
    }  # fmt: skip


def testable(claims: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the run can say something of a good part of the claims."""
    return sum(claim["holds"] is not None for claim in claims) >= len(claims) / 4


def claims(rows: pa.Table) -> str:
    """Markdown: each claim, how the authors' numbers stand, and ours in both definitions."""
    tables = [Table(rows, definition) for definition in ("authors", "clean")]
    lines = ["| # | claim | their numbers | ours, authors' metric | ours, clean |", "|---:|---|---|---|---|"]
    for claim in CLAIMS:
        found = [claim.under(table) for table in tables]
        cells = " | ".join(f"**{WORDS[one['holds']]}**: {one['ours'] or one['why']}" for one in found)
        lines.append(f"| {claim.number} | {claim.text} | {claim.status} | {cells} |")
    return "\n".join(lines)
