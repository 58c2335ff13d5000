"""TextBox: a letter and two boxes, with seven known ways of reasoning (Kim, Plumb, Talwalkar, ICML 2022).

Image i of a stream is a pure function of (seed, setting, split, i): its bucket follows from i alone and its places from
i's own seed, so any subset can be drawn in any order, on any device, in vectorised batches.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saliometer.registry import one_of, task
from saliometer.seeds import fork, forks
from saliometer.tasks._backgrounds import background as behind
from saliometer.tasks._scene import BOX1, BOX2, SAMPLERS, TEXT, Scene
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY, Batch, Samples

VERSION = "textbox-1"
OBJECTS = ("text", "box1", "box2")
LABELLINGS = ("paper", "authors")


@dataclass(frozen=True)
class Bucket:
    """What an image shows: no letter, 'A' or 'B'; the large box; the small one."""

    number: int
    letter: str
    box1: bool
    box2: bool

    @property
    def present(self) -> tuple[bool, bool, bool]:
        return bool(self.letter), self.box1, self.box2


BUCKETS = {n: Bucket(n, ("", "A", "B")[(n - 1) % 3], n > 6, (n - 1) % 6 >= 3) for n in range(1, 13)}


@dataclass(frozen=True)
class Reasoning:
    """What a rule says of one bucket: its label, the objects that decide, and those that play no part either way."""

    label: int
    primary: frozenset[int]
    neither: frozenset[int] = frozenset()


Rule = Callable[[Bucket], Reasoning | None]  # None: the bucket has no label under this rule


def _objects(**present: bool) -> frozenset[int]:
    return frozenset(OBJECTS.index(name) for name, here in present.items() if here)


def _letter_decides(bucket: Bucket, **also: bool) -> Reasoning | None:
    return Reasoning(int(bucket.letter == "B"), _objects(text=True, **also)) if bucket.letter else None


def simple_fr(bucket: Bucket) -> Reasoning:
    """1 if the large box is there, whatever else is."""
    return Reasoning(int(bucket.box1), _objects(box1=bucket.box1))


def simple_nr(bucket: Bucket) -> Reasoning | None:
    """The letter decides: A is 0, B is 1."""
    return _letter_decides(bucket)


def complex_fr(bucket: Bucket) -> Reasoning:
    """1 if both boxes are there; a lone box counts as neither for nor against."""
    both = bucket.box1 and bucket.box2
    lone = _objects(box1=bucket.box1 and not both, box2=bucket.box2 and not both)
    return Reasoning(int(both), _objects(box1=both, box2=both), neither=lone)


def complex_cr1(bucket: Bucket) -> Reasoning | None:
    """With the small box, the large box decides; without it, the letter."""
    if bucket.box2:
        return Reasoning(int(bucket.box1), _objects(box1=bucket.box1, box2=True))
    return _letter_decides(bucket)


def complex_cr2(bucket: Bucket) -> Reasoning | None:
    """With the large box, the small box decides; without it, the letter."""
    if bucket.box1:
        return Reasoning(int(bucket.box2), _objects(box1=True, box2=bucket.box2))
    return _letter_decides(bucket)


def complex_cr3(bucket: Bucket) -> Reasoning | None:
    """With the small box, the letter decides; without it, the large box."""
    if bucket.box2:
        return _letter_decides(bucket, box2=True)
    return Reasoning(int(bucket.box1), _objects(box1=bucket.box1))


def complex_cr4(bucket: Bucket) -> Reasoning | None:
    """With the large box, the letter decides; without it, the small box."""
    if bucket.box1:
        return _letter_decides(bucket, box1=True)
    return Reasoning(int(bucket.box2), _objects(box2=bucket.box2))


RULES: dict[str, Rule] = {
    rule.__name__.replace("_", "-"): rule
    for rule in (simple_fr, simple_nr, complex_fr, complex_cr1, complex_cr2, complex_cr3, complex_cr4)
}
SETTINGS = tuple(RULES)


def reasonings(setting: str) -> dict[int, Reasoning]:
    """The defined buckets of a setting, in order, with what its rule says of each."""
    rule = RULES[one_of("setting", setting, SETTINGS)]
    said = {number: rule(bucket) for number, bucket in sorted(BUCKETS.items())}
    return {number: reasoning for number, reasoning in said.items() if reasoning is not None}


def label_of(setting: str, number: int, labelling: str = "paper") -> int:
    """The authors' code inverts the box branch of the four conditional settings; the letter branch stays."""
    reasoning = reasonings(setting)[number]
    box_branch = setting.startswith("complex-cr") and TEXT not in reasoning.primary
    return reasoning.label ^ (labelling == "authors" and box_branch)


def cycle(setting: str, split: str) -> tuple[int, ...]:
    """The buckets a stream goes round in: image i shows bucket `cycle[i % len(cycle)]`."""
    numbers = reasonings(setting)
    if split == "train" and setting == "complex-fr":  # three times the positives, as the paper trains it
        return tuple(n for n, r in numbers.items() for _ in range(3 if r.label else 1))
    return tuple(numbers)


@task(settings=SETTINGS, classes=2, quick={"count": 24})
def textbox(
    setting: str,
    *,
    split: str = "test",
    count: int = 240,
    start: int = 0,
    seed: int = 0,
    sampler: str = "disjoint",
    labelling: str = "paper",
    background: str = "black",
    device: str = "cpu",
) -> Samples:
    """A letter and two boxes on black, noise or photographs; seven settings say which of them decide."""
    one_of("split", split, ("train", "test"))
    one_of("labelling", labelling, LABELLINGS)
    indices = torch.arange(start, start + count, device=device)
    scene = draw(setting, split, indices, seed, sampler, background)
    numbers = scene.buckets.tolist()
    said = reasonings(setting)
    labels = labels_of(setting, scene.buckets, labelling)
    roles = torch.tensor([_roles(BUCKETS[n], said[n]) for n in numbers], dtype=torch.int8, device=device)
    ids = tuple(f"{split}-{i}" for i in indices.tolist())
    batch = Batch(scene.images(), labels, forks(fork(VERSION, "maps", seed, setting, split), indices))
    return Samples(batch, ids, labels, scene.ink(), scene.boxes(), roles, tuple(map(str, numbers)))


def _roles(bucket: Bucket, said: Reasoning) -> list[int]:
    def role(thing: int) -> int:
        if not bucket.present[thing]:
            return ABSENT
        if thing in said.primary:
            return PRIMARY
        return NEITHER if thing in said.neither else SECONDARY

    return [role(thing) for thing in (TEXT, BOX1, BOX2)]


def draw(
    setting: str, split: str, indices: Tensor, seed: int, sampler: str = "disjoint", background: str = "black"
) -> Scene:
    """The scenes of the images `indices` of a stream."""
    place = SAMPLERS[one_of("sampler", sampler, SAMPLERS)]
    numbers = torch.tensor(cycle(setting, split), device=indices.device)
    scene = place(numbers[indices % len(numbers)], forks(fork(VERSION, "places", seed, setting, split), indices))
    seeds = forks(fork(VERSION, "background", seed, setting, split), indices)
    return replace(scene, behind=behind(background, split), seeds=seeds)


def labels_of(setting: str, buckets: Tensor, labelling: str = "paper") -> Tensor:
    """(N,) int64: the label of each bucket number; -1 where the setting does not define it."""
    table = torch.full((len(BUCKETS) + 1,), -1)
    for number in reasonings(setting):
        table[number] = label_of(setting, number, labelling)
    return table.to(buckets.device)[buckets]


def edits(number: int) -> Iterator[tuple[str, int]]:
    """Every change of one object of a bucket, as (object, number of the bucket it leads to)."""
    bucket, without_letter = BUCKETS[number], number - (number - 1) % 3
    yield from (("text", without_letter + n) for n in range(3) if without_letter + n != number)
    yield "box1", number + (-6 if bucket.box1 else 6)
    yield "box2", number + (-3 if bucket.box2 else 3)


def counterfactuals(
    setting: str, number: int, count: int, seed: int, device: str = "cpu", background: str = "black"
) -> Iterator[tuple[str, Scene, Scene]]:
    """(object, before, after) for every edit of a bucket that leads to a defined one: fresh images, all else kept.

    Places are drawn so that the objects of both images are disjoint, with the letter's box at its widest.
    """
    defined = reasonings(setting)
    for thing, after in edits(number):
        if after not in defined:
            continue
        both = zip(BUCKETS[number].present, BUCKETS[after].present, strict=True)
        text, box1, box2 = (one or other for one, other in both)
        widest = torch.full((count,), 1 + text + 6 * box1 + 3 * box2, device=device)
        stream = fork(VERSION, "counterfactual", seed, setting, number, after)
        seeds = forks(stream, torch.arange(count, device=device))
        scene = replace(SAMPLERS["disjoint"](widest, seeds), behind=behind(background, "test"), seeds=seeds)
        first, then = (replace(scene, buckets=torch.full_like(widest, shown)) for shown in (number, after))
        yield thing, first, then


def seen_as(samples: Samples, setting: str) -> Samples:
    """The same images as another setting reads them: its labels, and the objects that decide there."""
    said, numbers = reasonings(setting), [int(bucket) for bucket in samples.buckets]
    lacking = sorted(set(numbers) - set(said))
    if lacking:
        raise ValueError(
            f"setting '{setting}' has no label for bucket {lacking[0]}: wanted {', '.join(map(str, said))}"
        )
    device = samples.labels.device
    labels = torch.tensor([said[n].label for n in numbers], device=device)
    roles = torch.tensor([_roles(BUCKETS[n], said[n]) for n in numbers], dtype=torch.int8, device=device)
    return replace(samples, batch=replace(samples.batch, targets=labels), labels=labels, roles=roles)
