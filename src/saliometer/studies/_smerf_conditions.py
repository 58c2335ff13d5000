"""SMERF's claims that take more than one benchmark: models' cards, other conditions, other K (smerf.md 7.7)."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from saliometer.engine.imagenet import SCRATCH
from saliometer.results import SCHEMA
from saliometer.studies._claims import Finding, MissingError
from saliometer.studies._smerf_claims import CLAIMS, held, judged_under
from saliometer.studies._smerf_sweep import KS, condition
from saliometer.studies._smerf_table import FIGURE_2, REAL, Smerf, Table, every, falls, pairs
from saliometer.summary import Scores

POOLED = [name for name in FIGURE_2 if name != "DL-RC"]  # the paper has no DeepLIFT on networks with pooling
OVERALL, BUCKET = {"simple": 0.98, "complex": 0.95}, 0.90  # accuracy
TIE = 0.01  # PIOU of two lowest buckets that are as good as the same


class Whole(Table):
    """The black benchmark, and with it all else that a study holds, in one definition."""

    def __init__(
        self, rows: Mapping[str, pa.Table], definition: str, models: Mapping[str, Mapping[str, Any]],
        missing: Mapping[str, str], sweep: pa.Table | None,
    ) -> None:  # fmt: skip
        super().__init__(rows["black"], definition)
        self._models, self._missing, self._sweep = models, missing, sweep
        self._parts = {name: Table(some, definition) for name, some in rows.items() if definition in held(some)}

    @property
    def cards(self) -> Mapping[str, Any]:
        """Of the plain models on black."""
        return self._models.get("black", {})

    def remarks(self, parts: Iterable[str]) -> str:
        """Of models that missed the bar, and of a VGG16 that is not the paper's."""
        cards = {part: self._models.get(part, {}).values() for part in parts}
        missed = {part: sum(not card["accepted"] for card in some) for part, some in cards.items()}
        lost = [f"{count} of {len(cards[part])} models of {part}" for part, count in missed.items() if count]
        said = [f"{' and '.join(lost)} were not accepted, so their reasoning is not known"] if lost else []
        made = {f"{part} is {card['features']}" for part, some in cards.items() for card in some if "features" in card}
        said += [f"{one}, the paper's has ImageNet's features, frozen" for one in sorted(made) if SCRATCH in one]
        return "; ".join(said)

    def part(self, name: str) -> Table:
        """Another condition's benchmark."""
        if name not in self._parts:
            raise MissingError(f"{name} was not run: {self._missing.get(name, 'the same command goes on with it')}")
        return self._parts[name]

    def swept(self) -> dict[int, Scores]:
        """K -> PIOU of that many pixels."""
        if self._sweep is None:
            raise MissingError("PIOU was not measured for other K: the same command goes on with it")
        found = {k: Scores(self._sweep, "piou", self.definition, condition=condition(k)) for k in KS}
        if lost := [str(k) for k, scores in found.items() if not scores.cells]:
            raise MissingError(f"no PIOU for K = {', '.join(lost)} under {self.definition}")
        return found


def claim_1(whole: Whole) -> Finding:
    if not whole.cards:
        raise MissingError("the study keeps no cards of its models: the same command goes on with it")
    overall, worst = {}, {}
    for stem, card in whole.cards.items():
        low = min(card["accuracy_per_bucket"], key=lambda bucket: float(card["accuracy_per_bucket"][bucket]))
        overall[stem] = float(card["accuracy"])
        worst[f"{stem} bucket {low}"] = float(card["accuracy_per_bucket"][low])
    short = [stem for stem, value in overall.items() if value < OVERALL[stem.split("-")[0]]]
    short += [name for name, value in worst.items() if value < BUCKET]
    least = min(worst, key=lambda name: worst[name])
    figures = ", ".join(f"{stem} {value:.3f}" for stem, value in overall.items())
    said = f"; not {', '.join(short)}" if short else ""
    return Finding(f"{figures}; lowest {least} {worst[least]:.3f}{said}", not short)


def claim_21(whole: Whole) -> Finding:
    robust, names = whole.part("robust"), ("G", "SG", "GBP")
    gains = {m: (whole.mean("piou", m, "simple"), robust.mean("piou", m, "simple")) for m in names}
    said = ", ".join(f"{m} {before:.2f} to {after:.2f}" for m, (before, after) in gains.items())
    raised = Finding(said, all(after >= before + 0.1 for before, after in gains.values()))
    lower = pairs(robust.drop("piou", FIGURE_2), falls)
    return every(raised, Finding(f"lower on complex: {lower.ours}", lower.holds))


def claim_22(whole: Whole) -> Finding:
    found = []
    for name in ("vgg16", "alexnet"):
        part = whole.part(name)
        mean = pairs(part.drop("piou", POOLED), falls)
        least = pairs(part.lowest("piou", POOLED), lambda simple, complex_: complex_ <= simple + TIE)
        found += [Finding(f"{name}: mean {mean.ours}", mean.holds), Finding(f"lowest bucket {least.ours}", least.holds)]
    return every(*found)


def _below_black(whole: Whole, part: Table) -> Finding:
    """Whether the lowest bucket of simple reasoning is below that on black for most methods."""
    both = {m: (whole.least("pafl", m, "simple"), part.least("pafl", m, "simple")) for m in REAL}
    found = pairs(both, falls, wanted=len(REAL) // 2 + 1)
    return Finding(f"below black {found.ours}", found.holds)


def claim_23(whole: Whole) -> Finding:
    natural = whole.part("natural")
    least = natural.lowest("pafl", REAL)
    best, hard = (max(least, key=lambda m: least[m][place]) for place in (0, 1))
    return every(
        _below_black(whole, natural),
        Finding(f"highest on simple {best} {least[best][0]:.2f}", least[best][0] < 0.45),
        Finding(f"on complex {hard} {least[hard][1]:.2f}", least[hard][1] <= 0.05),
    )


def claim_24(whole: Whole) -> Finding:
    noise, natural = whole.part("noise"), whole.part("natural")
    drop = pairs(noise.lowest("pafl", REAL), falls)
    means = [float(np.mean([one.least("pafl", m, "simple") for m in REAL])) for one in (whole, noise, natural)]
    milder = Finding(
        "mean over methods, black {:.2f}, noise {:.2f}, natural {:.2f}".format(*means), means[1] > means[2]
    )
    return every(_below_black(whole, noise), Finding(f"lower on complex {drop.ours}", drop.holds), milder)


def claim_28(whole: Whole) -> Finding:
    swept = whole.swept()
    spec = whole.spec("IG")
    if lost := [whole.spec(m) for m in REAL if any(whole.spec(m) not in scores.methods for scores in swept.values())]:
        raise MissingError(f"no PIOU for other K of {', '.join(lost)}")
    curves = np.stack([scores.values["complex-cr1", "9"][:, scores.methods.index(spec)] for scores in swept.values()])
    change = float(np.mean(curves.max(0) - curves.min(0)))  # of one map, on average
    orders = {k: _order(whole, scores) for k, scores in swept.items()}
    leaders = ", ".join(f"{order[0]} at {k}" for k, order in orders.items() if k in (KS[0], KS[-1]))
    figures = (
        f"one IG map changes by {change:.2f} on average ({curves.mean(1).min():.2f} to {curves.mean(1).max():.2f} in "
        f"the mean); {len(set(map(tuple, orders.values())))} orders of methods for {len(KS)} K, first {leaders}"
    )
    return Finding(figures, change > 0.1 and len(set(map(tuple, orders.values()))) > 1)


def _order(whole: Whole, scores: Scores) -> list[str]:
    """Best first; rounded, so that LRP-z and I*G do not change places by their last digit."""
    means = {m: round(float(scores.means[0, scores.methods.index(whole.spec(m))]), 6) for m in REAL}
    return sorted(REAL, key=lambda m: -means[m])


def claim_29(whole: Whole) -> Finding:
    natural = whole.part("natural")
    both = {
        f"{m} {group}": (whole.mean("pafl", m, group), natural.mean("pafl", m, group))
        for m in REAL
        for group in ("simple", "complex")
    }
    return pairs(both, lambda black, other: other <= black)


WHOLE = [
    Smerf(
        1, "Held-out accuracy is 0.98 or more on simple, 0.95 or more on complex settings, 0.90 or more in any bucket",
        "simple 1.000, complex 0.986 to 0.995; lowest bucket 0.90", claim_1, "", "holds", scores=False,
    ),
    Smerf(
        21, "Adversarial training raises PIOU of G, SG and GBP on simple by 0.1 or more; all still drop on complex",
        "G 0.27 to 0.59, SG 0.26 to 0.595, GBP 0.375 to 0.65", claim_21, "smerf_11", "holds", FIGURE_2,
        parts=("robust",),
    ),
    Smerf(
        22, "VGG16, AlexNet: mean and lowest PIOU drop from simple to complex for 9 methods (lowest: ties within 0.01)",
        "IG 0.53 to 0.425 (VGG16), 0.525 to 0.395 (AlexNet)", claim_22, "smerf_10",
        "holds for the mean; ties near 0 for the lowest", POOLED, parts=("vgg16", "alexnet"),
    ),
    Smerf(
        23, "Natural backgrounds: lowest PAFL on simple below black's for most, none near 0.5; about 0 on complex",
        "13 of 15 below; highest 0.33 (LRP-eps); complex about 0.01", claim_23, "smerf_12", "holds", REAL,
        parts=("natural",),
    ),
    Smerf(
        24, "Noise: lowest PAFL on simple below black's for most, lower still on complex for all, milder than natural",
        "", claim_24, "smerf_30b", "no stored data", REAL, parts=("noise", "natural"),
    ),
    Smerf(
        28, "PIOU hangs on K: over 100 to 400 pixels one map's changes by more than 0.1, and so does methods' order",
        "one IG map 0.188 to 0.488", claim_28, "smerf_15", "holds for the one stored map", REAL,
    ),
    Smerf(
        29, "Mean PAFL on natural backgrounds is not above that on black for any method, simple and complex", "",
        claim_29, "smerf_12", "no stored means", REAL, parts=("natural",),
    ),
]  # fmt: skip


def judged(
    rows: Mapping[str, pa.Table], models: Mapping[str, Mapping[str, Any]], missing: Mapping[str, str],
    sweep: pa.Table | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """All 29, in their order; `rows` and cards of each condition that was run, `missing` why others were not."""
    there = {"black": SCHEMA.empty_table(), **rows}
    tables = [Whole(there, definition, models, missing, sweep) for definition in held(there["black"])]
    found = judged_under(CLAIMS, tables) + judged_under(WHOLE, tables)
    return sorted(found, key=lambda claim: int(claim["id"]))
