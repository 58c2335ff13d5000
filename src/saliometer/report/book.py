"""What a page holds: one shape for every kind of run, so that the page knows nothing of where its numbers come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Method:
    """A row of the scoreboard, best first."""

    name: str
    role: str = ""  # 'control', 'ceiling', 'own', or '' for one of ours
    hint: str = ""  # what a control is, in words
    rank: str = ""  # '1=' where it shares a rank


@dataclass(frozen=True)
class Cell:
    """A method under a metric: its mean and interval, its rank, and how it stands to the controls."""

    value: float
    low: float
    high: float
    rank: str = ""
    lift: float = 0.0  # -1 to 1: how far above the best control that never sees the model; 0 where none can tell
    undefined: int = 0  # images without a value
    note: str = ""


@dataclass(frozen=True, eq=False)
class Head:
    """A column of the scoreboard."""

    metric: str
    definition: str
    better: str  # 'higher', 'lower' or ''
    kind: str  # what sort of metric, to choose columns by
    share: bool  # a fraction, printed times 100
    cells: Mapping[str, Cell]  # by method; only those it has
    label: str = ""  # where it is not the metric's name
    words: str = ""  # what it measures
    values: Floats | None = None  # (methods, samples) in the book's order; none for a column that joins others
    bars: bool = False  # drawn as bars from 0 to 1

    @property
    def name(self) -> str:
        return self.label or self.metric

    @property
    def stage(self) -> str:
        """The definition without its parameters."""
        return self.definition.partition("(")[0]


@dataclass(frozen=True)
class Sample:
    """An image; means weigh groups equally."""

    id: str
    group: str = ""


@dataclass(frozen=True)
class Outline:
    """The outline of an object, as an SVG path in units of the picture's pixels."""

    role: str  # 'primary', 'secondary' or 'neither'
    path: str


@dataclass(frozen=True, eq=False)
class Pictures:
    """Small images and every method's map of them."""

    samples: tuple[int, ...]  # which of the book's samples
    captions: tuple[str, ...]
    photos: npt.NDArray[np.uint8]  # (N, H, W, 1 or 3)
    maps: Mapping[str, npt.NDArray[np.int8]]  # method -> (N, h, w), -127 to 127; -128 where there is none
    outlines: tuple[tuple[Outline, ...], ...] = ()


@dataclass(frozen=True)
class Cost:
    what: str
    seconds: float
    passes: float
    shared: float


@dataclass(frozen=True)
class Term:
    """A name and what it means."""

    name: str
    text: str
    formula: str = ""
    code: str = ""
    here: bool = False  # used in this run


@dataclass(frozen=True)
class Failed:
    """One method's failures: how many units, the last line of the first traceback, and that traceback."""

    method: str
    count: int
    reason: str
    traceback: str


@dataclass(frozen=True, eq=False)
class Book:
    kind: str  # 'bench', 'audit' or a study's name
    name: str
    title: str
    created: str
    verdict: Sequence[Any]  # sentences, plain or Markup
    facts: Sequence[tuple[str, str]]
    methods: Sequence[Method]
    heads: Sequence[Head]
    samples: Sequence[Sample]
    pictures: Pictures | None
    provenance: Sequence[tuple[str, Sequence[str]]]
    note: str = ""  # under the scoreboard
    banner: str = ""  # what must be known before anything else
    lost: Sequence[str] = ()  # methods without a score
    figures: Sequence[Any] = ()  # figures.Drawn
    figures_first: bool = False  # pictures before the scoreboard
    claims: Sequence[Mapping[str, Any]] = ()
    compared: Any = None  # against.Compared
    costs: Sequence[Cost] = ()
    warnings: Sequence[str] = ()
    failed: Sequence[Failed] = ()
    terms: Sequence[Term] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
