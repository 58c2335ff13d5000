"""Smooth masks and what they leave of an image, for extremal perturbations (Fong et al., 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer import fused
from saliometer.perturb import blurred

LEVELS = 8  # of blur, from 20 pixels at a height of 224 down to none
COLDNESS = 20.0  # of the smooth maximum
REACH = 4  # steps from a pixel to the furthest node that counts
NOWHERE = -1e4  # the parameter of a node beyond the border: it has nothing to say
AT_ONCE = 2**26  # numbers, one for each node around each pixel of each mask


@dataclass(frozen=True, eq=False)
class Brush:
    """How parameters on a grid of nodes paint a mask: each pixel takes the smooth maximum of the nodes around it.

    Pixels are taken by cell, one for each node, and by their place in it: the nodes around lie alike for all cells.
    The derivative is written out, because autograd would keep hundreds of numbers for each pixel of each mask.
    """

    sides: tuple[int, int]
    step: int  # pixels from node to node
    taps: Tensor  # (T,): which of the nodes around a cell some of its pixels can see
    shifts: tuple[tuple[int, int], ...]  # the same as rows and columns
    kernel: Tensor  # (places in a cell, T): how much each of them counts
    handicap: Tensor  # (places in a cell, T): NOWHERE for those too far away, else 0

    @property
    def nodes(self) -> tuple[int, int]:
        return -(-self.sides[0] // self.step), -(-self.sides[1] // self.step)

    def masks(self, grids: Tensor) -> Tensor:
        """(M, H, W) in [0, 1] from (M, nodes, nodes)."""
        if kernels := fused.kernels(grids):
            return self._pixels(kernels.painted(grids, *self._around_all)[0])
        found = []
        for part in self._parts(grids):
            heights, say = self._around(part)
            found.append(heights.mul_(say).sum(1))
        return self._pixels(torch.cat(found).div_(COLDNESS))

    def slopes(self, grids: Tensor, masks: Tensor, pull: Tensor) -> Tensor:
        """(M, nodes, nodes): how (M, H, W) pulls at the masks' pixels add up at the nodes."""
        found = []
        cells = self._cells(masks), self._cells(pull)
        if kernels := fused.kernels(grids):
            return kernels.pulled(grids, *self._around_all, *cells)  # type: ignore[no-any-return]
        for part, mask, force in zip(*map(self._parts, (grids, *cells)), strict=True):
            heights, say = self._around(part)
            shares = torch.addcmul((force * (1 - COLDNESS * mask))[:, None], force[:, None], heights)
            found.append(shares.mul_(say).mul_(self.kernel.T[..., None]).sum(2))  # (M, T, cells)
        return self._gathered(torch.cat(found))

    @property
    def _around_all(self) -> tuple[Any, ...]:
        return self.taps, self.kernel, self.handicap, REACH, COLDNESS, NOWHERE

    def _around(self, grids: Tensor) -> tuple[Tensor, Tensor]:
        """(M, T, places, cells) each: COLDNESS times what nodes around would make of a pixel, and how much they say.

        With cells last, sums over nodes run along memory.
        """
        down, across = self.nodes
        padded = F.pad(grids, (REACH,) * 4, value=NOWHERE)
        near = torch.stack([padded[:, y : y + down, x : x + across] for y, x in self.shifts], 1).flatten(2)
        kernel, handicap = self.kernel.T[..., None], self.handicap.T[..., None]
        heights = torch.addcmul(handicap, near[:, :, None], kernel, value=COLDNESS)
        return heights, heights.softmax(1)

    def _gathered(self, shares: Tensor) -> Tensor:
        """(M, nodes, nodes): what every cell has for the nodes around it, summed where it belongs."""
        down, across = self.nodes
        padded = shares.new_zeros(len(shares), down + 2 * REACH, across + 2 * REACH)
        for (y, x), share in zip(self.shifts, shares.unflatten(2, self.nodes).unbind(1), strict=True):
            padded[:, y : y + down, x : x + across] += share
        return padded[:, REACH:-REACH, REACH:-REACH]

    def _parts(self, values: Tensor) -> tuple[Tensor, ...]:
        count = self.nodes[0] * self.nodes[1] * self.kernel.numel()
        return torch.split(values, max(1, AT_ONCE // count))

    def _pixels(self, cells: Tensor) -> Tensor:
        """(M, H, W) from (M, places, cells)."""
        down, across = self.nodes
        rows = cells.reshape(-1, self.step, self.step, down, across).permute(0, 3, 1, 4, 2)
        return rows.reshape(-1, down * self.step, across * self.step)[:, : self.sides[0], : self.sides[1]]

    def _cells(self, pixels: Tensor) -> Tensor:
        """(M, places, cells) from (M, H, W); 0 beyond the border."""
        down, across = self.nodes
        short = [count * self.step - side for count, side in zip(self.nodes, self.sides, strict=True)]
        rows = F.pad(pixels, (0, short[1], 0, short[0])).view(-1, down, self.step, across, self.step)
        return rows.permute(0, 2, 4, 1, 3).reshape(len(pixels), self.step**2, down * across)


def brush(images: Tensor) -> Brush:
    """Nodes every 7 pixels at a height of 224, which count up to four such steps away."""
    height, width = images.shape[2:]
    step = max(1, round(7 * height / 224))
    gaps = torch.arange(step)[:, None] - step * torch.arange(-REACH, REACH + 1)  # from each place to each node
    distance = torch.hypot(gaps[:, None, :, None].double(), gaps[None, :, None].double()).flatten(2).flatten(0, 1)
    seen = distance <= REACH * step
    taps = seen.any(0).nonzero()[:, 0]
    kernel = (-2 * (distance / (3 * step) - 0.5).clamp(min=0).square()).exp()[:, taps]
    handicap = torch.zeros_like(kernel).masked_fill_(~seen[:, taps], NOWHERE)
    shifts = tuple(divmod(tap, 2 * REACH + 1) for tap in taps.tolist())
    return Brush((height, width), step, taps.to(images.device), shifts, kernel.to(images), handicap.to(images))


def pyramid(images: Tensor) -> Tensor:
    """(LEVELS, N, C, H, W): the images from all blurred to sharp."""
    widest = 20 * images.shape[2] / 224
    return torch.stack([blurred(images, widest * (1 - level / (LEVELS - 1))) for level in range(LEVELS)])


def mixed(levels: Tensor, masks: Tensor) -> tuple[Tensor, Tensor]:
    """(A, N, C, H, W) each: images as sharp as (A, N, H, W) masks say, and how they change with the mask."""
    height = ((len(levels) - 1) * masks)[:, :, None]
    floor = height.floor().clamp(max=len(levels) - 2)
    below = floor.long().expand(-1, -1, levels.shape[2], -1, -1)
    lower, upper = levels.gather(0, below), levels.gather(0, below + 1)
    return torch.lerp(lower, upper, height - floor), (len(levels) - 1) * (upper - lower)


def sharpened(masks: Tensor, areas: Sequence[float]) -> Tensor:
    """(A, N, H, W) of 0 and 1: the highest pixels of each mask, as many as its area has; of equal ones the last."""
    flat = masks.flatten(2)
    pixels = flat.shape[2]
    counts = [pixels - round((1 - area) * pixels) for area in areas]
    lowest = [some.topk(max(1, count), sorted=False).values.amin(1) for some, count in zip(flat, counts, strict=True)]
    threshold = torch.stack(lowest)[:, :, None]  # (A, N, 1)
    above = flat > threshold
    left = flat.new_tensor(counts)[:, None, None] - above.sum(2, keepdim=True)  # to be filled by those that are equal
    equal = flat == threshold
    behind = equal.flip(2).cumsum(2).flip(2)  # how many equal ones are left from here on
    return (above | (equal & (behind <= left))).to(masks.dtype).view_as(masks)
