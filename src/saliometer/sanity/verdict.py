"""The verdict on one method and task, by a rule that was fixed before any map was seen (sanity.md 3.6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from saliometer.sanity.gates import Gate, missed
from saliometer.summary import Estimate

SENSITIVE, INSENSITIVE, UNDECIDED = "sensitive", "insensitive", "undecided"
SMALL = 0.02  # below it E is none
LEVEL = 0.01  # of the permutation test, corrected
APART = 0.10  # of the double dissociation


@dataclass(frozen=True)
class Verdict:
    """A word, whether the maps are accurate as well, and why."""

    word: str
    accurate: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.word}, accurate" if self.accurate else self.word


@dataclass(frozen=True)
class Focused:
    """What accuracy is judged by: the double dissociation, the focus of trained and random models and of a flat map."""

    dissociation: Estimate
    trained: Estimate
    random: Estimate
    area: Estimate


def verdict(energy: Estimate, p: float, gates: Sequence[Gate] = (), focused: Focused | None = None) -> Verdict:
    """`p` is the permutation test's, corrected by Holm over methods and tasks; without `focused` none is accurate."""
    lacking = missed(gates)
    if lacking:
        return Verdict(UNDECIDED, False, lacking)
    accurate = focused is not None and is_accurate(focused)
    if energy.high < SMALL:
        return Verdict(INSENSITIVE, accurate, f"E is below {SMALL:g}: its upper limit is {energy.high:.4f}")
    if p < LEVEL and energy.low > 0:
        return Verdict(SENSITIVE, accurate, f"E is above 0: its lower limit is {energy.low:.4f}, p = {p:.2g}")
    if math.isnan(energy.value) or math.isnan(p):
        return Verdict(UNDECIDED, accurate, "E is undefined: too few maps have any mass")
    limits = f"E is between {energy.low:.4f} and {energy.high:.4f}, p = {p:.2g}"
    return Verdict(
        UNDECIDED, accurate, f"{limits}: wanted an upper limit below {SMALL:g}, or p < {LEVEL:g} and E above 0"
    )


def is_accurate(focused: Focused) -> bool:
    """DD is above 0.10 for sure, and the focus of trained models above both references, intervals apart."""
    above = all(focused.trained.low > other.high for other in (focused.random, focused.area))
    return focused.dissociation.low > APART and above
