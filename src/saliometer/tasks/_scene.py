"""TextBox scenes: where the letter and the boxes lie, and how they are drawn; everything in vectorised batches."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.seeds import uniform
from saliometer.tasks._backgrounds import SIDE, Behind
from saliometer.tasks._glyphs import BOX_WIDTHS, HEIGHT, WIDTH, glyphs

TEXT, BOX1, BOX2 = range(3)
BOX_SIDES = {BOX1: 10, BOX2: 4}
LETTER_ORIGINS, BOX_CORNERS = 36, 54  # letters start at 6..41, boxes at 0..53


@dataclass(frozen=True, eq=False)
class Scene:
    """What to draw: for each image its bucket and the top left corner of every object, present or not."""

    buckets: Tensor  # (N,) int64
    corners: Tensor  # (N, 3, 2) int64: row, column of text, box1, box2
    behind: Behind | None = None  # the background; None is black
    seeds: Tensor | None = None  # (N,) int64: of each image's background

    def __getitem__(self, part: Tensor | slice) -> "Scene":
        seeds = None if self.seeds is None else self.seeds[part]
        return Scene(self.buckets[part], self.corners[part], self.behind, seeds)

    @property
    def letters(self) -> Tensor:
        """(N,) int64: 0 for A, 1 for B, -1 for none."""
        return (self.buckets - 1) % 3 - 1

    @property
    def present(self) -> Tensor:
        """(N, 3) bool."""
        number = self.buckets - 1
        return torch.stack((number % 3 > 0, number >= 6, number % 6 >= 3), 1)

    def sizes(self) -> Tensor:
        """(N, 3, 2) int64: rows and columns of every object's box, as if it were present."""
        sizes = torch.tensor([[HEIGHT, WIDTH], [10, 10], [4, 4]], device=self.buckets.device)
        sizes = sizes.repeat(len(self.buckets), 1, 1)
        sizes[:, TEXT, 1] = torch.tensor(BOX_WIDTHS, device=self.buckets.device)[self.letters.clamp(min=0)]
        return sizes

    def boxes(self) -> Tensor:
        """(N, 3, 4) int64: row, row end, column, column end; 0 where absent."""
        ends = self.corners + self.sizes()
        boxes = torch.stack((self.corners, ends), 3).flatten(2)
        return boxes * self.present[..., None]

    def overlapping(self) -> Tensor:
        """(N,) bool: whether the boxes of any two objects that are present share a pixel."""
        low, high, here = self.corners, self.corners + self.sizes(), self.present
        clash = torch.zeros_like(self.buckets, dtype=torch.bool)
        for one, other in ((TEXT, BOX1), (TEXT, BOX2), (BOX1, BOX2)):
            meet = (low[:, one] < high[:, other]) & (low[:, other] < high[:, one])
            clash |= meet.all(1) & here[:, one] & here[:, other]
        return clash

    def layers(self) -> Tensor:
        """(N, 3, 64, 64) float32: the opacity of each object."""
        here = self.present
        span = torch.arange(SIDE, device=self.buckets.device)
        rows, columns = (span - self.corners[..., axis, None] for axis in (0, 1))  # (N, 3, 64): place within the object
        layers = rows.new_empty((len(rows), 3, SIDE, SIDE), dtype=torch.float32)
        for thing, side in BOX_SIDES.items():
            inside = [(place[:, thing] >= 0) & (place[:, thing] < side) for place in (rows, columns)]
            layers[:, thing] = inside[0][:, :, None] & inside[1][:, None, :] & here[:, thing, None, None]
        edged = torch.nn.functional.pad(glyphs().to(span.device), (1, 1, 1, 1, 0, 1))  # index 2: no letter
        row = (rows[:, TEXT] + 1).clamp(0, HEIGHT + 1)
        column = (columns[:, TEXT] + 1).clamp(0, WIDTH + 1)
        letter = self.letters % 3  # -1 becomes 2
        layers[:, TEXT] = edged[letter[:, None, None], row[:, :, None], column[:, None, :]]
        return layers

    def ink(self) -> Tensor:
        """(N, 3, 64, 64) bool: the pixels an object touches."""
        return self.layers() > 0

    def images(self) -> Tensor:
        """(N, 3, 64, 64) float32 in [0, 1]: every object is white, so drawing one over the other is a maximum."""
        white = self.layers().amax(1, keepdim=True)
        if self.behind is None or self.seeds is None:
            return white.expand(-1, 3, -1, -1).contiguous()
        behind = self.behind(self.seeds)
        return torch.lerp(behind, torch.ones_like(behind), white)  # exact where an object covers all, or nothing


def _corners(seeds: Tensor, attempt: int) -> Tensor:
    """(N, 3, 2) int64: places drawn independently of each other."""
    choices = torch.tensor([[LETTER_ORIGINS] * 2, [BOX_CORNERS] * 2, [BOX_CORNERS] * 2], device=seeds.device)
    first = torch.tensor([[6, 6], [0, 0], [0, 0]], device=seeds.device)
    return (uniform(seeds, f"corners {attempt}", 3, 2) * choices).long() + first


def disjoint(buckets: Tensor, seeds: Tensor) -> Scene:
    """Redraw all places of an image together until no two boxes share a pixel: uniform over disjoint placements."""
    corners = _corners(seeds, 0)
    pending = Scene(buckets, corners).overlapping().nonzero()[:, 0]
    attempt = 0
    while len(pending):
        attempt += 1
        corners[pending] = _corners(seeds[pending], attempt)
        pending = pending[Scene(buckets[pending], corners[pending]).overlapping()]
    return Scene(buckets, corners)


def authors(buckets: Tensor, seeds: Tensor) -> Scene:
    """The authors' sampler: minimum distances between corners, the letter's taken without its offset of 6."""
    scene = Scene(buckets, _corners(seeds, 0))
    text = scene.corners[:, TEXT] - 6
    letter, box1, _ = scene.present.unbind(1)

    def near(one: Tensor, other: Tensor, limit: int) -> Tensor:
        return (one - other).square().sum(1) <= limit

    def redraw(thing: int, clash: Callable[[Tensor], Tensor]) -> None:
        attempt, pending = 0, clash(scene.corners[:, thing]).nonzero()[:, 0]
        while len(pending):
            attempt += 1
            scene.corners[pending, thing] = _corners(seeds[pending], attempt)[:, thing]
            pending = pending[clash(scene.corners[:, thing])[pending]]

    redraw(BOX1, lambda corner: near(corner, text, 300))
    redraw(
        BOX2,
        lambda corner: (letter & near(corner, text, 400)) | (box1 & near(corner, scene.corners[:, BOX1], 300)),
    )
    return scene


SAMPLERS = {"disjoint": disjoint, "authors": authors}
