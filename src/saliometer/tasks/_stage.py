"""Scenes of any objects: where they lie, and how they are drawn over a background; everything in vectorised batches."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from saliometer.seeds import uniform
from saliometer.tasks._backgrounds import SIDE, Behind
from saliometer.tasks._rules import Object, called, shown_in

TRIES = 2000


class Stock:
    """What can be drawn, as tensors on a device: for each object and kind its shape, size and colour; 0 is absent."""

    def __init__(self, objects: tuple[Object, ...], device: torch.device) -> None:
        self.objects = objects
        buckets = shown_in(objects).values()
        ways = [["", *thing.every] for thing in objects]
        kinds = [[way.index(shown[thing.name]) for way, thing in zip(ways, objects, strict=True)] for shown in buckets]
        self.kinds = torch.tensor([[0] * len(objects), *kinds], device=device)  # (buckets + 1, K): numbers start at 1
        most = max(map(len, ways))
        self.sizes = torch.zeros(len(objects), most, 2, dtype=torch.int64)
        self.colours = torch.zeros(len(objects), most, 3)
        height, width = (max(k.size[axis] for thing in objects for k in thing.every.values()) for axis in (0, 1))
        self.shapes = torch.zeros(len(objects), most, height + 2, width + 2)  # with an empty edge all round
        for row, thing in enumerate(objects):
            for column, kind in enumerate(thing.every.values(), start=1):
                self.sizes[row, column] = torch.tensor(kind.size)
                self.colours[row, column] = torch.tensor(kind.colour)
                self.shapes[row, column, 1 : kind.size[0] + 1, 1 : kind.size[1] + 1] = kind.shape
        self.sizes, self.colours, self.shapes = (x.to(device) for x in (self.sizes, self.colours, self.shapes))

    def corners(self, kinds: Tensor, draws: Tensor) -> Tensor:
        """(N, K, 2) int64 from draws (N, K, 2) in [0, 1); 0 for what is absent."""
        corners = torch.zeros(draws.shape, dtype=torch.int64, device=draws.device)
        for row, thing in enumerate(self.objects):
            for number, kind in enumerate(thing.every.values(), start=1):
                chosen = kinds[:, row] == number
                corners[chosen, row] = kind.place(draws[chosen, row], kind.room).to(torch.int64)
        return corners

    def overlapping(self, kinds: Tensor, corners: Tensor, gap: int) -> Tensor:
        """(N,) bool: whether the boxes of any two objects come nearer than `gap` empty pixels."""
        things = torch.arange(len(self.objects), device=kinds.device)
        low, high = corners, corners + self.sizes[things, kinds]
        clash = torch.zeros(len(kinds), dtype=torch.bool, device=kinds.device)
        for one in range(len(self.objects)):
            for other in range(one):
                near = (low[:, one] < high[:, other] + gap) & (low[:, other] < high[:, one] + gap)
                clash |= near.all(1) & (kinds[:, one] > 0) & (kinds[:, other] > 0)
        return clash


@lru_cache(maxsize=16)
def stock(objects: tuple[Object, ...], device: torch.device) -> Stock:
    return Stock(objects, device)


@dataclass(frozen=True, eq=False)
class Stage:
    """What to draw: for each image its bucket and the top left corner of every object, present or not."""

    objects: tuple[Object, ...]
    buckets: Tensor  # (N,) int64
    corners: Tensor  # (N, K, 2) int64: row, column
    seeds: Tensor  # (N,) int64: of each image's background
    behind: Behind | None = None  # None is black

    def __getitem__(self, part: Tensor | slice) -> "Stage":
        return replace(self, buckets=self.buckets[part], corners=self.corners[part], seeds=self.seeds[part])

    @cached_property
    def stock(self) -> Stock:
        return stock(self.objects, self.buckets.device)

    @property
    def kinds(self) -> Tensor:
        """(N, K) int64: 0 where absent."""
        return self.stock.kinds[self.buckets]

    @property
    def _things(self) -> Tensor:
        return torch.arange(len(self.objects), device=self.buckets.device)

    def boxes(self) -> Tensor:
        """(N, K, 4) int64: row, row end, column, column end; 0 where absent."""
        ends = self.corners + self.stock.sizes[self._things, self.kinds]
        return torch.stack((self.corners, ends), 3).flatten(2) * (self.kinds > 0)[..., None]

    def layers(self) -> Tensor:
        """(N, K, 64, 64) float32: the opacity of each object."""
        shapes = self.stock.shapes
        span = torch.arange(SIDE, device=self.buckets.device)
        row = (span - self.corners[..., 0, None] + 1).clamp(0, shapes.shape[2] - 1)  # (N, K, 64): place in the shape
        column = (span - self.corners[..., 1, None] + 1).clamp(0, shapes.shape[3] - 1)
        things = self._things[:, None, None]
        return shapes[things, self.kinds[..., None, None], row[..., :, None], column[..., None, :]]

    def ink(self) -> Tensor:
        """(N, K, 64, 64) bool: the pixels an object touches."""
        return self.layers() > 0

    def images(self) -> Tensor:
        """(N, 3, 64, 64) float32 in [0, 1]: objects over the background, in their order."""
        count, device = len(self.buckets), self.buckets.device
        black = torch.zeros(count, 3, SIDE, SIDE, device=device)
        images = self.behind(self.seeds) if self.behind else black
        layers, colours = self.layers(), self.stock.colours[self._things, self.kinds]
        for thing in range(len(self.objects)):
            colour = colours[:, thing, :, None, None].expand_as(images)
            images = torch.lerp(images, colour, layers[:, thing, None])  # exact where it covers all, or nothing
        return images


def placed(
    objects: tuple[Object, ...], buckets: Tensor, seeds: Tensor, gap: int = 0, *also: Tensor
) -> tuple[Tensor, ...]:
    """(N, K, 2) corners for `buckets` and for each of `also`, out of the same draws.

    All places of an image are redrawn together until no two boxes share a pixel in any of them.
    """
    kept, several = stock(objects, buckets.device), [stock(objects, buckets.device).kinds[b] for b in (buckets, *also)]
    found = [torch.zeros(len(buckets), len(objects), 2, dtype=torch.int64, device=buckets.device) for _ in several]
    pending = torch.arange(len(buckets), device=buckets.device)
    for attempt in range(TRIES):
        draws = uniform(seeds[pending], f"corners {attempt}", len(objects), 2)
        clash = torch.zeros(len(pending), dtype=torch.bool, device=buckets.device)
        for kinds, corners in zip(several, found, strict=True):
            corners[pending] = kept.corners(kinds[pending], draws)
            clash |= kept.overlapping(kinds[pending], corners[pending], gap)
        pending = pending[clash]
        if not len(pending):
            return tuple(found)
    number = int(buckets[pending[0]])
    raise ValueError(
        f"bucket {number} ({called(shown_in(objects)[number])}): after {TRIES} draws its objects still overlap; make "
        "them smaller or give them more room"
    )
