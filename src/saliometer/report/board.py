"""The scoreboard's cells: means with intervals, ranks with ties, and how far above the controls each method stands."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from saliometer.judgement import FLOORS
from saliometer.report.book import Cell
from saliometer.summary import Estimate


class Judge(Protocol):
    """A metric in one definition, asked about methods."""

    def estimate(self, method: str) -> Estimate: ...
    def difference(self, one: str, other: str) -> Estimate:
        """The paired difference of two methods' means, above 0 where `one` is better."""


def cells(
    judge: Judge, methods: Sequence[str], controls: Sequence[str], ranks: Mapping[str, int],
    undefined: Callable[[str], int], compare: bool = True,
) -> dict[str, Cell]:  # fmt: skip
    """One for each method; `compare` says whether the metric can tell an explanation from a control."""
    floors = [c for c in FLOORS if c in controls and c in methods]
    lifts = {m: lift(judge, m, floors) for m in methods if m not in floors} if compare and floors else {}
    most = max((abs(value) for value in lifts.values()), default=0.0)
    shared = Counter(ranks.values())
    found = {}
    for method in methods:
        mean = judge.estimate(method)
        rank = f"{ranks[method]}{'=' if shared[ranks[method]] > 1 else ''}" if method in ranks else ""
        share = lifts.get(method, 0.0) / most if most else 0.0
        found[method] = Cell(mean.value, mean.low, mean.high, rank, share, undefined(method))
    return found


def lift(judge: Judge, method: str, floors: Sequence[str]) -> float:
    """How far above the best floor, where it beats every one; how far below the worst of those that beat it; else 0."""
    gaps = [judge.difference(method, floor) for floor in floors]
    if all(gap.low > 0 for gap in gaps):
        return min(gap.value for gap in gaps)
    beaten = [gap.value for gap in gaps if gap.high < 0]
    return min(beaten, default=0.0)
