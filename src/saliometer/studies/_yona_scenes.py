"""Images that several labellings share, and the groups of models that are shown them (sanity.md 3.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.types import PRIMARY, SECONDARY, Model, Samples

RANDOM = "random"


@dataclass(frozen=True, eq=False)
class Group:
    """Models that differ by seed alone."""

    models: Sequence[Model]
    task: str = ""  # whose labels it learned; '' for none
    places: Tensor | None = None  # the images it is shown, where not all


@dataclass(frozen=True)
class Comparison:
    """One group against another on a task; groups as the scene calls them, 'random.half' has the head of half."""

    task: str
    trained: str
    against: str


@dataclass(frozen=True, eq=False)
class Scene:
    """One set of images, as each of its tasks labels them."""

    name: str
    samples: Mapping[str, Samples]  # task -> the same images, with its labels and what decides there
    groups: Mapping[str, Group]
    comparisons: Sequence[Comparison]
    focus: Mapping[str, Sequence[str]]  # task -> the groups whose focus is asked for, its own first
    effects: Sequence[
        tuple[Mapping[str, float], str, Tensor | None]
    ] = ()  # weights, random group, images: equation (1)
    target: str = "own"  # the class that is explained: the model's own prediction, or the task's 'label'
    shown: tuple[int, ...] = ()  # images that are kept as pictures

    @property
    def tasks(self) -> list[str]:
        return list(self.samples)

    @property
    def focal(self) -> str:
        """The task whose evidence is outlined in pictures."""
        return next(iter(self.focus))

    @property
    def images(self) -> Tensor:
        return self.samples[self.tasks[0]].batch.images

    def labels(self, group: str) -> Tensor:
        """Of what a group learned, or of the first task where it learned nothing."""
        return self.samples[self.groups[group].task or self.tasks[0]].labels

    def regions(self, task: str) -> tuple[Tensor, Tensor]:
        """(N, H, W) bool twice: what decides, and the distraction; none of either where one is absent."""
        deciding, distracting = (self.samples[task].region(role, "ink") for role in (PRIMARY, SECONDARY))
        both = (deciding.flatten(1).any(1) & distracting.flatten(1).any(1))[:, None, None]
        return deciding & both, distracting & both


def named(group: str) -> str:
    """As rows call it: the head of an untrained model goes without saying."""
    return group.partition(".")[0]


def spread(count: int, wanted: int) -> tuple[int, ...]:
    """So many images, far from each other."""
    return tuple(torch.linspace(0, count - 1, min(wanted, count)).round().long().tolist())
