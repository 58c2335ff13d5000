"""What the SMERF paper says of its methods, each claim a small function over rows (smerf.md 7.7)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.studies._claims import Finding
from saliometer.studies._smerf_table import (
    COMPLEX,
    CONTROLS,
    FIGURE_2,
    REAL,
    STRONG,
    WEAK,
    Smerf,
    Table,
    each,
    every,
    falls,
    pairs,
)
from saliometer.tasks.textbox import BUCKETS, SETTINGS

DEFINITIONS = ("clean", "authors")  # the first that a run holds decides
WORDS = {True: "holds", False: "fails", None: "open"}


def claim_2(table: Table) -> Finding:
    return pairs(table.drop("piou", FIGURE_2), falls)


def claim_3(table: Table) -> Finding:
    return pairs(table.drop("pafl", REAL), falls)


def claim_4(table: Table) -> Finding:
    return pairs(table.lowest("pafl", REAL), falls)


def claim_5(table: Table) -> Finding:
    return each({m: table.mean("piou", m, "complex") for m in REAL}, lambda value: value < 0.5)


def claim_6(table: Table) -> Finding:
    means = {m: table.mean("pafl", m, "simple") for m in STRONG + WEAK}
    return every(
        each({m: means[m] for m in STRONG}, lambda value: value > 0.5),
        each({m: means[m] for m in WEAK}, lambda value: value < 0.2),
    )


def claim_7(table: Table) -> Finding:
    means = {m: table.mean("pafl", m, "complex") for m in REAL}
    best = max(means, key=lambda m: means[m])
    near = each({m: means[m] for m in ("IG", "I*G", "LRP-z", "DL-RC", "DL-R")}, lambda v: abs(v - 0.5) <= 0.05)
    return every(near, Finding(f"highest {best} {means[best]:.2f}", best == "LRP-eps"))


def claim_8(table: Table) -> Finding:
    return pairs(table.drop("safl", REAL), lambda simple, complex_: complex_ > simple, wanted=12)


def claim_9(table: Table) -> Finding:
    def spread(method: str, group: str) -> float:
        return float(np.std(list(table.buckets("pafl", method, group).values())))

    return pairs({m: (spread(m, "simple"), spread(m, "complex")) for m in STRONG}, lambda one, other: other > one)


def claim_10(table: Table) -> Finding:
    """Present comes first: FR buckets with and without a letter, NR buckets with and without Box1.

    SAFL is of the buckets with it and with something that decides: a lone letter gets all there is to get.
    """
    letter = {n for n, bucket in BUCKETS.items() if bucket.letter}
    box = {n for n, bucket in BUCKETS.items() if bucket.box1}
    found, seen = {}, {}
    for m in table.above_noise():
        for setting, there in (("simple-fr", letter), ("simple-nr", box)):
            absent = set(BUCKETS) - there
            found[f"{m} {setting}"] = table.mean("pafl", m, setting, there), table.mean("pafl", m, setting, absent)
            sides = table.sides(m, setting).items()
            seen[f"{m} {setting}"] = float(np.mean([safl for (_, n), (_, safl) in sides if n in there]))
    least, value = min(seen.items(), key=lambda one: one[1], default=("of none above noise", 0.0))
    lowest = Finding(f"lowest SAFL {least} {value:.3f}", value > 0.01)
    return every(pairs(found, lambda there, absent: there < absent), lowest)


def _by_objects(table: Table, metric: str, method: str, setting: str) -> list[float]:
    """Means over buckets that show one, two and three objects, one of which decides; no SAFL where it stands alone."""
    deciding = {bucket for _, bucket in table.buckets("pafl", method, setting)}
    measured = table.buckets(metric, method, setting)
    found = []
    for objects in (1, 2, 3):
        some = [v for (_, n), v in measured.items() if n in deciding and sum(BUCKETS[n].present) == objects]
        found += [float(np.mean(some))] if some else []
    return found


def _falling(values: list[float]) -> bool:
    return all(later < earlier for earlier, later in pairwise(values))


def claim_11(table: Table) -> Finding:
    wrong, tried = [], 0
    for m in table.above_noise():
        for setting in ("simple-fr", "simple-nr"):
            primary, secondary = (_by_objects(table, metric, m, setting) for metric in ("pafl", "safl"))
            tried += 1
            if not (_falling(primary) and _falling([-value for value in secondary])):
                wrong.append(f"{m} {setting} {'/'.join(f'{v:.2f}' for v in primary)}")
    return Finding(f"{tried - len(wrong)} of {tried}" + (f"; not {', '.join(wrong)}" if wrong else ""), not wrong)


def claim_12(table: Table) -> Finding:
    """The fall from one to three objects, simple-fr, where the oracle's own PIOU does not change with the letter."""
    lost = {}
    for m in STRONG:
        pafl, piou = (_by_objects(table, metric, m, "simple-fr") for metric in ("pafl", "piou"))
        lost[m] = pafl[0] - pafl[-1], piou[0] - piou[-1]
    return pairs(lost, lambda pafl, piou: piou < pafl / 2)


def claim_13(table: Table) -> Finding:
    least = {m: min(table.both(m, "simple-fr") + table.both(m, "simple-nr")) for m in REAL}
    passing = [m for m, value in least.items() if value > 0.5]
    shown = ", ".join(f"{m} {least[m]:.2f}" for m in sorted(least, key=lambda m: -least[m])[:4])
    return Finding(shown, passing == ["DL-R"])


def claim_14(table: Table) -> Finding:
    return each({m: max(table.buckets("pafl", m, "simple").values()) for m in WEAK}, lambda value: value <= 0.5)


def claim_15(table: Table) -> Finding:
    full = [f"{m} {s}" for m in REAL for s in COMPLEX if all(value > 0.5 for value in table.both(m, s))]
    return Finding(", ".join(full) or "none", full == ["LRP-eps complex-fr"])


def claim_16(table: Table) -> Finding:
    letter = {m: table.mean("pafl", m, "complex-cr2", (5, 6)) for m in STRONG}
    boxes = {f"{m} {part}": table.mean("pafl", m, "complex-cr2", part) for m in STRONG for part in ((8, 9), (11, 12))}
    most = sum(value > 0.5 for value in letter.values())
    return every(
        Finding(f"5,6: {most} of {len(STRONG)} above 0.5", most > len(STRONG) / 2), each(boxes, lambda v: v <= 0.5)
    )


def claim_17(table: Table) -> Finding:
    lowest = {m: _lowest(table.buckets("pafl", m, "complex-cr2")) for m in REAL}
    others = Counter(bucket for bucket in lowest.values() if bucket != 9)
    there = [m for m, bucket in lowest.items() if bucket == 9]
    elsewhere = ", ".join(f"{count} in {bucket}" for bucket, count in sorted(others.items()))
    return Finding(f"{len(there)} of {len(REAL)} in bucket 9" + f"; {elsewhere}" * bool(others), len(there) >= 13)


def _lowest(buckets: Mapping[tuple[str, int], float]) -> int:
    return min(buckets, key=lambda cell: buckets[cell])[1]


def claim_18(table: Table) -> Finding:
    """By shares, since five settings of seven are complex."""
    failing = {group: _majority_failures(table, group) for group in ("simple", "complex")}
    figures = ", ".join(f"{group} {sum(found)} of {len(found)} pairs" for group, found in failing.items())
    return Finding(figures, np.mean(failing["complex"]) > np.mean(failing["simple"]))


def _majority_failures(table: Table, group: str) -> list[bool]:
    """One for each method and setting: whether SAFL is above PAFL in more than half of the buckets with both."""
    settings = [setting for setting in SETTINGS if setting.startswith(group)]
    sides = [list(table.sides(m, setting).values()) for m in REAL for setting in settings]
    return [sum(safl > pafl for pafl, safl in found) * 2 > len(found) for found in sides]


def claim_19(table: Table) -> Finding:
    """Violations are what SMAFL is above PMAFL, as shares of attribution per 1000 pixels."""

    def worst(group: str, only: Sequence[int] = ()) -> tuple[float, str]:
        found = [
            (1000 * (secondary - primary), f"{m} {setting} {bucket}")
            for m in table.above_noise()
            for (setting, bucket), (primary, secondary) in table.sides(m, group, ("pmafl", "smafl")).items()
            if not only or bucket in only
        ]
        return max(found, default=(float("nan"), "none above noise"))

    plain, letter, hard = worst("simple-fr"), worst("simple-nr", (8, 11)), worst("complex")
    figures = "; ".join(f"{value:+.2f} ({where})" for value, where in (plain, letter, hard))
    return Finding(f"most that SMAFL is above PMAFL: {figures}", plain[0] <= 0 < letter[0] < hard[0])


def claim_20(table: Table) -> Finding:
    simple, complex_ = ([table.mean("pafl", m, g) for m in ("G", "SG")] for g in ("simple", "complex"))
    figures = f"simple {simple[0]:.2f} to {simple[1]:.2f}, complex {complex_[0]:.2f} to {complex_[1]:.2f}"
    return Finding(figures, simple[1] - simple[0] <= 0.1 and complex_[1] < 0.5 * complex_[0])


def claim_25(table: Table) -> Finding:
    return each(
        {f"{m} {g}": table.mean("pafl", m, g) for m in ("Random", "Edge") for g in ("simple", "complex")},
        lambda value: abs(value - 0.05) <= 0.02,
    )


def claim_26(table: Table) -> Finding:
    product = table.buckets("pafl", "I*G", "all")
    z, path = ([abs(v - product[c]) for c, v in table.buckets("pafl", m, "all").items()] for m in ("LRP-z", "IG"))
    figures = f"LRP-z off by at most {max(z):.1e}; IG by {np.mean(path):.2f} in the mean, {max(path):.2f} at most"
    return Finding(figures, max(z) < 1e-3 and float(np.mean(path)) < 0.05)


def claim_27(table: Table) -> Finding:
    """Random is reported beside: top pixels that hit the deciding object cannot lie on another."""
    groups = ("simple", "complex")
    means = {f"{m} {g}": table.mean("siou", m, g) for m in REAL for g in groups}
    beside = {f"{m} {g}": (table.mean("piou", m, g), means[f"{m} {g}"]) for m in table.above_noise() for g in groups}
    chance = ", ".join(f"Random {g} {table.mean('siou', 'Random', g):.2f}" for g in groups)
    highest = max(means, key=lambda name: means[name])
    most = Finding(f"most {highest} {means[highest]:.2f} ({chance})", means[highest] < 0.2)
    below = pairs(beside, falls)
    return every(most, Finding(f"below PIOU {below.ours}", below.holds))


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
        17, "CR2: 13 of 15 methods have their lowest PAFL in bucket 9 (Box1 and B)", "13 of 15", claim_17,
        "smerf_8a", "no stored data", REAL,
    ),
    Smerf(
        18, "Majority failure (SAFL above PAFL in most buckets with both) is likelier on complex settings",
        "mostly complex", claim_18, "smerf_7", "no stored data", REAL,
    ),
    Smerf(
        19, "PMAFL is at least SMAFL on simple-fr, not on simple-nr (A with Box1), and complex violates it more",
        "holds in the plots", claim_19, "smerf_23", "holds", REAL,
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
    Smerf(
        27, "Mean SIOU is below 0.2 for every method, and below PIOU above noise level", "at most about 0.18 on simple",
        claim_27, "smerf_17a", "holds on simple; no stored data on complex", [*REAL, "Random"],
    ),
]  # fmt: skip


def judged(rows: pa.Table) -> list[dict[str, Any]]:
    """Every claim under the definitions the run holds; the first of them decides, what is missing leaves it open."""
    return judged_under(CLAIMS, [Table(rows, definition) for definition in held(rows)])


def held(rows: pa.Table) -> list[str]:
    """The definitions that claims are judged under, as far as the rows have them."""
    there = rows["definition"].unique().to_pylist()
    return [definition for definition in DEFINITIONS if definition in there]


def judged_under(claims: Sequence[Smerf], tables: Sequence[Table]) -> list[dict[str, Any]]:
    return [_joined(claim, {table.definition: claim.under(table) for table in tables}) for claim in claims]


def _joined(claim: Smerf, found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    known = {name: one for name, one in found.items() if one["holds"] is not None}
    paper = "; ".join(filter(None, (claim.paper, f"their numbers: {claim.status}")))
    first = next(iter((known or found).values()), {"holds": None, "why": f"the run has no {' or '.join(DEFINITIONS)}"})
    said = "\n".join(f"{name}: {WORDS[one['holds']]}, {one['ours']}" for name, one in known.items())
    return {
        "id": claim.number, "text": claim.text, "paper": paper, "figure": claim.figure,
        "ours": said if claim.scores else first.get("ours", ""), "holds": first["holds"], "why": first["why"],
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
