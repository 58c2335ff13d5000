"""Whether the maps of a training's checkpoints come nearer to the final ones as accuracy rises (COSE's Figure 5)."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from saliometer.cose.table import CHECKPOINT, RANDOM, group_of
from saliometer.registry import Spec
from saliometer.studies._cose_evidence import Evidence, Trained
from saliometer.studies._cose_paper import METHODS

ALPHA = 0.05
DRAWING = ("SmoothGrad", "LIME")  # at random, so that even the final model's maps differ from call to call


@dataclass(frozen=True)
class Point:
    """A checkpoint: its accuracy, and how alike its maps are to the final model's, a mean over images."""

    method: str
    model: Trained
    checkpoint: str
    accuracy: float
    similarity: float


@dataclass(frozen=True)
class Followed:
    """Pearson's correlation of the two over checkpoints of all models."""

    method: str
    r: float
    p: float
    points: int
    each: list[Point] = field(default_factory=list, compare=False)

    @property
    def significant(self) -> bool:
        return self.p < ALPHA

    def __str__(self) -> str:
        return f"r {self.r:+.2f}, p {self.p:.2g}"


def points(e: Evidence, last: bool = False) -> Iterator[Point]:
    """All images count, whatever the checkpoint predicts; with `last` the final model too, which is alike by 1."""
    for model in e.models():
        known_accuracy = {RANDOM: model.untrained, **model.checkpoints}
        for method, pairs, cell in e.cells(model):
            known = cell.counted() & ~np.isnan(cell.value)
            for place, condition in enumerate(pairs.conditions):
                if group_of(condition) not in (CHECKPOINT, RANDOM):
                    continue
                name = str(dict(Spec.parse(condition).params).get("name", RANDOM))
                accuracy = known_accuracy.get(name, float("nan"))
                chosen = known & (cell.condition == place)
                if accuracy == accuracy and chosen.any():
                    yield Point(method, model, name, accuracy, float(cell.value[chosen].mean()))
            if last and method not in DRAWING and known.any():
                yield Point(method, model, "the model itself", model.accuracy, 1.0)


def followed(e: Evidence, last: bool = False) -> list[Followed]:
    """By method, where there are three points or more, and a spread."""
    from scipy.stats import pearsonr

    held: dict[str, list[Point]] = {}
    for point in points(e, last):
        held.setdefault(point.method, []).append(point)
    found = []
    for method in METHODS:
        some = held.get(method, [])
        x, y = ([getattr(one, name) for one in some] for name in ("accuracy", "similarity"))
        if len(some) > 2 and np.ptp(x) and np.ptp(y):
            r, p = pearsonr(x, y)
            found.append(Followed(method, float(r), float(p), len(some), some))
    return found
