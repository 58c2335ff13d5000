"""Images whose evidence is known, one file per task; and what a task of one's own is made of."""

from saliometer.tasks._backgrounds import black, natural, noise
from saliometer.tasks._rules import Decided, Kind, Object, Shown
from saliometer.tasks._shapes import (
    BLUE,
    GREEN,
    GREY,
    RED,
    WHITE,
    YELLOW,
    anywhere,
    cross,
    disc,
    left,
    right,
    ring,
    square,
    triangle,
)  # fmt: skip
from saliometer.tasks._task import Task

__all__ = [
    "BLUE", "GREEN", "GREY", "RED", "WHITE", "YELLOW", "Decided", "Kind", "Object", "Shown", "Task", "anywhere",
    "black", "cross", "disc", "left", "natural", "noise", "right", "ring", "square", "triangle",
]  # fmt: skip
