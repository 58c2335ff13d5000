"""What metrics of pairs of maps have in common for an audit: how much they explain again, and rows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from saliometer.engine.score import Method
from saliometer.types import Samples


@dataclass(frozen=True, eq=False)
class Rows:
    """One comparison of all images; each list has one entry for each image."""

    definition: str
    metrics: list[str]
    conditions: list[str]
    values: list[float]
    notes: list[str]


class Comparison(Protocol):
    """Measures of maps that are compared with those of other images or models."""

    name: str  # in costs and failures
    said: list[str]  # what a reader must know of it

    @property
    def marks(self) -> dict[str, str]:
        """What decides its numbers beside the request: name -> SHA-256."""

    @property
    def again(self) -> int:
        """How many explanations an image takes beside its own."""

    @property
    def predicted(self) -> int:
        """How many predictions, once for all methods."""

    @property
    def beside(self) -> int:
        """How many other images go through, once for all."""

    @property
    def controls(self) -> list[Method]:
        """Maps that explain nothing and are judged by this alone."""

    def rows(self, method: Method, maps: Tensor, samples: Samples) -> list[Rows]:
        """Of one chunk; `maps` are the method's of the images themselves."""

    def pictures(self, method: Method, maps: Tensor, rows: Sequence[Rows]) -> dict[str, Any]:
        """A few of the pairs that `rows` has just compared, as arrays; {} where there is nothing to show."""


def notes_of(reasons: Iterable[str], where: Sequence[Sequence[bool]], count: int) -> list[str]:
    """The first reason that holds for each image, '' where none does."""
    given = [(why, places) for why, places in zip(reasons, where, strict=True) if any(places)]
    return [next((why for why, places in given if places[place]), "") for place in range(count)]
