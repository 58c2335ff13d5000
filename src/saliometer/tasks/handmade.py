"""Handmade: a cross and a ring are joined by a logical rule that a network with weights set by hand computes exactly.

A trained network may lean on something else than what was planted; this one cannot, for its weights are written down
(models/_logic.py). A disc plays no part, and behind all is noise that is darker than any object. Objects keep a pixel
apart, so that no part of two of them looks like a third.
"""

from saliometer.registry import task
from saliometer.tasks._rules import Decided, Kind, Object, Shown
from saliometer.tasks._shapes import cross, disc, ring
from saliometer.tasks._task import Task
from saliometer.types import Samples

VERSION = "handmade-1"
DARK = "noise(most=127)"  # below a half in every channel
SHAPES = {"cross": cross(9), "ring": ring(9), "disc": disc(7)}


def both_there(shown: Shown) -> Decided:
    """1 if cross and ring are both there; a lone one counts as neither for nor against: the other's absence decides."""
    there = [name for name in ("cross", "ring") if shown[name]]
    return Decided(1, by=there) if len(there) == 2 else Decided(0, neither=there)


def any_there(shown: Shown) -> Decided:
    """1 if cross or ring is there; where both are, each would do alone, so both decide."""
    there = [name for name in ("cross", "ring") if shown[name]]
    return Decided(int(bool(there)), by=there)


def one_there(shown: Shown) -> Decided:
    """1 if just one of cross and ring is there; where both are, taking out either changes the label: both decide."""
    there = [name for name in ("cross", "ring") if shown[name]]
    return Decided(int(len(there) == 1), by=there)


TASK = Task(
    "handmade",
    objects=[Object(name, Kind(shape)) for name, shape in SHAPES.items()],
    rules={"and": both_there, "or": any_there, "xor": one_there},
    background=DARK,
    gap=1,
    version=VERSION,
)


@task(settings=TASK.settings, classes=2, quick={"count": 24})
def handmade(
    setting: str, *, split: str = "test", count: int = 240, start: int = 0, seed: int = 0, device: str = "cpu"
) -> Samples:
    """A cross, a ring and a disc in noise, for networks with weights set by hand: and, or, xor of cross and ring."""
    return TASK.samples(setting, split=split, count=count, start=start, seed=seed, device=device)
