"""A task of one's own: objects and rules in, images whose evidence is known out.

Image i of a stream is a pure function of (seed, setting, split, i), as in TextBox.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

import torch
from torch import Tensor

from saliometer.registry import one_of
from saliometer.seeds import fork, forks, uniform
from saliometer.tasks._backgrounds import SPLITS, Behind
from saliometer.tasks._backgrounds import background as named
from saliometer.tasks._rules import (
    PROBES,
    Decided,
    Object,
    Rule,
    called,
    check_objects,
    decided,
    edits,
    roles,
    shown_in,
)  # fmt: skip
from saliometer.tasks._stage import Stage, placed
from saliometer.types import Batch, Samples

Background = Callable[..., Tensor]  # (seeds, *, split) -> (N, 3, 64, 64) in [0, 1]


@dataclass(frozen=True, eq=False)
class Task:
    """Objects, and rules that say what each image is labelled and why; one rule is one setting.

    A rule is a function of what is shown (object -> its kind, '' where absent) that gives back Decided, or None where
    there is no label. `background` is a function, or the name of one of TextBox's. Boxes of objects keep `gap` empty
    pixels apart.
    """

    name: str
    objects: Sequence[Object]
    rules: Mapping[str, Rule] | Sequence[Rule]  # by setting; or functions, whose settings are named like them
    classes: int = 2
    background: Background | str = "black"
    gap: int = 0
    version: str = ""
    buckets: dict[int, dict[str, str]] = field(init=False)  # number -> object -> its kind
    said: dict[str, dict[int, Decided]] = field(init=False)  # setting -> bucket with a label -> what its rule says

    def __post_init__(self) -> None:
        if not self.name.replace("_", "").replace("-", "").isalnum() or self.classes < 2 or self.gap < 0:
            raise ValueError(
                f"task '{self.name}', classes {self.classes}, gap {self.gap}: wanted a name of letters, digits, - and "
                "_, 2 classes or more, and a gap of 0 or more"
            )
        object.__setattr__(self, "objects", tuple(self.objects))
        check_objects(self.objects)
        object.__setattr__(self, "buckets", shown_in(self.objects))
        if not self.rules or len(self.by_setting) < len(self.rules):
            names = [*self.by_setting]
            raise ValueError(f"task '{self.name}': rules {names}; wanted one or more, each with a name of its own")
        said = {s: decided(s, rule, self.buckets, self.classes) for s, rule in self.by_setting.items()}
        object.__setattr__(self, "said", said)
        if isinstance(self.background, str):
            named(self.background, "test")  # an unknown one is told now

    @property
    def settings(self) -> tuple[str, ...]:
        return tuple(self.said)

    @property
    def things(self) -> tuple[str, ...]:
        """The objects' names."""
        return tuple(thing.name for thing in self.objects)

    @property
    def by_setting(self) -> dict[str, Rule]:
        if isinstance(self.rules, Mapping):
            return dict(self.rules)
        return {rule.__name__.replace("_", "-"): rule for rule in self.rules}

    def told(self, setting: str) -> str:
        """The rule in words: the first line of its docstring."""
        return (self.by_setting[setting].__doc__ or setting).strip().split("\n")[0]

    def called(self, number: int) -> str:
        return called(self.buckets[number])

    def reasonings(self, setting: str) -> dict[int, Decided]:
        return self.said[one_of("setting", setting, self.said)]

    def cycle(self, setting: str, split: str) -> tuple[int, ...]:
        """The buckets a stream goes round in; those of rare labels come more often in training, to balance classes."""
        said = self.reasonings(setting)
        if split == "test":
            return tuple(said)
        counts = Counter(one.label for one in said.values())
        most = max(counts.values())
        return tuple(number for number, one in said.items() for _ in range(round(most / counts[one.label])))

    def samples(
        self, setting: str, *, split: str = "test", count: int = 240, start: int = 0, seed: int = 0, device: str = "cpu"
    ) -> Samples:
        one_of("split", split, SPLITS)
        indices = torch.arange(start, start + count, device=device)
        stage, said = self.draw(setting, split, indices, seed), self.reasonings(setting)
        numbers = stage.buckets.tolist()
        labels = self.labels_of(setting, stage.buckets)
        parts = torch.tensor([roles(self.buckets[n], said[n]) for n in numbers], dtype=torch.int8, device=device)
        ids = tuple(f"{split}-{i}" for i in indices.tolist())
        batch = Batch(stage.images(), labels, forks(fork(self.name, "maps", seed, setting, split), indices))
        return Samples(batch, ids, labels, stage.ink(), stage.boxes(), parts, tuple(map(str, numbers)))

    def draw(self, setting: str, split: str, indices: Tensor, seed: int) -> Stage:
        """The scenes of the images `indices` of a stream."""
        numbers = torch.tensor(self.cycle(setting, split), device=indices.device)
        buckets = numbers[indices % len(numbers)]
        seeds = forks(fork(self.name, "places", seed, setting, split), indices)
        (corners,) = placed(self._objects, buckets, seeds, self.gap)
        return Stage(self._objects, buckets, corners, seeds, self._behind(split))

    def labels_of(self, setting: str, buckets: Tensor) -> Tensor:
        """(N,) int64: the label of each bucket number; -1 where the setting does not define it."""
        table = torch.full((len(self.buckets) + 1,), -1)
        for number, one in self.reasonings(setting).items():
            table[number] = one.label
        return table.to(buckets.device)[buckets]

    def counterfactuals(
        self, setting: str, number: int, count: int, seed: int, device: str = "cpu"
    ) -> Iterator[tuple[str, Stage, Stage]]:
        """(object, before, after) for every edit of a bucket that leads to a defined one: fresh images, all else kept.

        An object that changes its kind stays where it was, as far as its new place allows."""
        defined = self.reasonings(setting)
        for thing, after in edits(self.buckets, number):
            if after not in defined:
                continue
            stream = fork(self.name, "counterfactual", seed, setting, number, after)
            seeds = forks(stream, torch.arange(count, device=device))
            both = [torch.full_like(seeds, shown) for shown in (number, after)]
            places = placed(self._objects, both[0], seeds, self.gap, both[1])
            behind = self._behind("test")
            before, later = (
                Stage(self._objects, b, corners, seeds, behind) for b, corners in zip(both, places, strict=True)
            )
            yield thing, before, later

    def digest(self, setting: str) -> str:
        """Of all that decides the images of a setting, their labels and what is said of their objects."""
        probes = forks(fork("probe"), torch.arange(PROBES))
        draws = uniform(probes, "draws", 2)
        told: list[object] = [self.classes, self.gap, sorted((n, repr(s)) for n, s in self.reasonings(setting).items())]
        for thing in self.objects:
            for word, kind in thing.every.items():
                places = kind.place(draws, kind.room).tolist()
                told.append((thing.name, word, kind.shape.tolist(), tuple(kind.colour), places))
        behind = self._behind("test")
        told.append(behind(probes[:2]).double().sum((2, 3)).tolist() if behind else "black")
        return sha256(repr(told).encode()).hexdigest()

    @property
    def _objects(self) -> tuple[Object, ...]:
        return tuple(self.objects)

    def _behind(self, split: str) -> Behind | None:
        if isinstance(self.background, str):
            return named(self.background, split)
        return partial(self.background, split=split)
