"""A reasoning of one's own: objects, a rule that labels what is shown, and what that says of every object.

Buckets are all that can be shown, every object absent or in one of its kinds, numbered from 1 with the first object
changing fastest. Which have a label follows from the rule, which is checked in every bucket.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from saliometer.tasks._backgrounds import SIDE
from saliometer.tasks._shapes import WHITE, Colour, Place, anywhere
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY

PROBES = 64


@dataclass(frozen=True, eq=False)
class Kind:
    """One way an object may look, and where it may lie then."""

    shape: Tensor  # (h, w) in [0, 1]: opacity
    colour: Colour = WHITE
    place: Place = anywhere

    @property
    def size(self) -> tuple[int, int]:
        return int(self.shape.shape[0]), int(self.shape.shape[1])

    @property
    def room(self) -> tuple[int, int]:
        """How many rows and columns its top left corner can start at."""
        return SIDE - self.size[0] + 1, SIDE - self.size[1] + 1


@dataclass(frozen=True, eq=False)
class Object:
    """Something an image may show, in one of its kinds, or not."""

    name: str
    kinds: Mapping[str, Kind] | Kind

    @property
    def every(self) -> dict[str, Kind]:
        """kind -> how it looks; an object of one kind has its own name."""
        return {self.name: self.kinds} if isinstance(self.kinds, Kind) else dict(self.kinds)


Shown = Mapping[str, str]  # object -> its kind, '' where it is absent


@dataclass(frozen=True)
class Decided:
    """What a rule says of one bucket: its label and the objects that decide; those that play no part are secondary.

    `neither` names objects that are not to be scored at all.
    """

    label: int
    by: Sequence[str] | str = ()
    neither: Sequence[str] | str = ()

    @property
    def primary(self) -> frozenset[str]:
        return frozenset([self.by] if isinstance(self.by, str) else self.by)

    @property
    def unscored(self) -> frozenset[str]:
        return frozenset([self.neither] if isinstance(self.neither, str) else self.neither)


Rule = Callable[[Shown], Decided | None]  # None: the bucket has no label


def shown_in(objects: Sequence[Object]) -> dict[int, dict[str, str]]:
    """bucket -> object -> its kind, '' where it is absent."""
    ways = [("", *thing.every) for thing in objects]
    numbered = enumerate(product(*reversed(ways)), start=1)
    return {n: dict(zip([thing.name for thing in objects], reversed(one), strict=True)) for n, one in numbered}


def called(shown: Shown) -> str:
    """A bucket in words: 'red light + cross'."""
    words = [kind if kind == name else f"{kind} {name}" for name, kind in shown.items() if kind]
    return " + ".join(words) or "nothing"


def edits(buckets: Mapping[int, Shown], number: int) -> Iterator[tuple[str, int]]:
    """Every change of one object of a bucket, as (object, number of the bucket it leads to)."""
    here = buckets[number]
    for after, there in buckets.items():
        changed = [name for name in here if here[name] != there[name]]
        if len(changed) == 1:
            yield changed[0], after


def roles(shown: Shown, said: Decided) -> list[int]:
    def role(name: str) -> int:
        if not shown[name]:
            return ABSENT
        if name in said.primary:
            return PRIMARY
        return NEITHER if name in said.unscored else SECONDARY

    return [role(name) for name in shown]


def decided(setting: str, rule: Rule, buckets: Mapping[int, Shown], classes: int) -> dict[int, Decided]:
    """The buckets with a label and what the rule says of each; refused where it contradicts itself."""
    said = {number: rule(dict(shown)) for number, shown in buckets.items()}
    again = {number: rule(dict(buckets[number])) for number in reversed(list(buckets))}
    where = {number: f"setting '{setting}', bucket {number} ({called(shown)})" for number, shown in buckets.items()}
    for number, one in said.items():
        if one is not None and not isinstance(one, Decided):
            raise ValueError(f"{where[number]}: the rule gives {type(one).__name__}, wanted Decided or None")
        if one != again[number]:
            raise ValueError(
                f"{where[number]}: the rule says {one}, and then {again[number]}; wanted the same each time"
            )
        if one is not None:
            _check_one(where[number], buckets[number], one, classes)
    found = {number: one for number, one in said.items() if one is not None}
    _check_labels(setting, found, classes, where)
    _check_parts(buckets, found, where)
    return found


def _check_one(where: str, shown: Shown, said: Decided, classes: int) -> None:
    if not isinstance(said.label, int) or not 0 <= said.label < classes:
        raise ValueError(f"{where}: label {said.label!r}, wanted a whole number from 0 to {classes - 1}")
    for word, names in (("decide", said.primary), ("be left out", said.unscored)):
        for name in sorted(names):
            if name not in shown:
                raise ValueError(f"{where}: '{name}' is to {word}, but objects are {', '.join(shown)}")
            if not shown[name]:
                raise ValueError(f"{where}: '{name}' is to {word}, but it is absent there")
    if both := sorted(said.primary & said.unscored):
        raise ValueError(f"{where}: '{both[0]}' is both to decide and to be left out")


def _check_labels(setting: str, said: Mapping[int, Decided], classes: int, where: Mapping[int, str]) -> None:
    labels = {one.label for one in said.values()}
    lacking = sorted(set(range(classes)) - labels)
    if not said:
        raise ValueError(f"setting '{setting}': no bucket has a label")
    if lacking:
        first = where[next(iter(said))]
        raise ValueError(
            f"{first} and all others: labels {sorted(labels)}; wanted each of {classes} classes in some bucket, "
            f"none has {lacking[0]}"
        )
    if not any(one.primary for one in said.values()):
        raise ValueError(f"setting '{setting}': nothing decides in any bucket, so no map could be scored")


def _check_parts(buckets: Mapping[int, Shown], said: Mapping[int, Decided], where: Mapping[int, str]) -> None:
    """What decides must matter somewhere, what plays no part nowhere that it is said to play none."""
    matters = {
        name
        for number in said
        for name, after in edits(buckets, number)
        if after in said and said[after].label != said[number].label
    }
    for number, one in said.items():
        for name in sorted(one.primary - matters):
            raise ValueError(
                f"{where[number]}: '{name}' is to decide, but no change of it alters the label in any bucket"
            )
        for name, after in edits(buckets, number):
            secondary = buckets[number][name] and name not in one.primary | one.unscored
            if secondary and after in said and said[after].label != one.label:
                raise ValueError(
                    f"{where[number]}: '{name}' is said to play no part, but with {called(buckets[after])} the label "
                    f"is {said[after].label} instead of {one.label}"
                )


def check_objects(objects: Sequence[Object]) -> None:
    """Names are words of their own, shapes fit, and places lie within the image."""
    names = [thing.name for thing in objects]
    if not objects or len(set(names)) < len(names) or "" in names:
        raise ValueError(f"objects are named {names}: wanted one or more, each with a name of its own")
    for thing in objects:
        for word, kind in thing.every.items():
            _check_kind(f"object '{thing.name}'" + f", kind '{word}'" * (word != thing.name), word, kind)


def _check_kind(where: str, word: str, kind: Kind) -> None:
    shape = kind.shape
    if not word:
        raise ValueError(f"{where}: a kind needs a name")
    fits = isinstance(shape, Tensor) and shape.ndim == 2 and max(shape.shape) <= SIDE and shape.numel()
    if not fits or shape.min() < 0 or shape.max() > 1 or not shape.any():
        came = tuple(shape.shape) if isinstance(shape, Tensor) else type(shape).__name__
        raise ValueError(f"{where}: shape {came}, wanted (h, w) up to {SIDE}, with values in [0, 1] that are not all 0")
    if len(kind.colour) != 3 or not all(0 <= part <= 1 for part in kind.colour):
        raise ValueError(f"{where}: colour {kind.colour}, wanted red, green and blue in [0, 1]")
    draws = torch.rand(PROBES, 2, generator=torch.Generator().manual_seed(0))
    corners = kind.place(draws, kind.room)
    whole = isinstance(corners, Tensor) and corners.shape == draws.shape and not corners.is_floating_point()
    if not whole or bool((corners < 0).any()) or bool((corners >= torch.tensor(kind.room)).any()):
        raise ValueError(
            f"{where}: its place gives {corners if not isinstance(corners, Tensor) else corners[:2].tolist()}, wanted "
            f"whole numbers (N, 2) from 0 to below {kind.room}: where its top left corner can start"
        )
