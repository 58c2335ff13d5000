"""Smooth masks and what they leave of an image, for extremal perturbations (Fong et al., 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.perturb import blurred

LEVELS = 8  # of blur, from 20 pixels at a height of 224 down to none
COLDNESS = 20.0  # of the smooth maximum
AT_ONCE = 2**26  # numbers, one for each node around each pixel of each mask


@dataclass(frozen=True, eq=False)
class Brush:
    """How parameters on a grid of nodes paint a mask: each pixel takes the smooth maximum of the nodes around it.

    The derivative is written out, because autograd would keep hundreds of numbers for each pixel of each mask.
    """

    rows: Tensor  # (H, K) int64: the nodes around each pixel, up and down
    columns: Tensor  # (W, K)
    kernel: Tensor  # (H, K, W, K): how much each of these nodes counts
    handicap: Tensor  # (H, K, W, K): -inf for those too far away or beyond the grid, else -COLDNESS
    down: Tensor  # (H K, nodes): 1 where a node is the one meant
    across: Tensor  # (W K, nodes)

    @property
    def nodes(self) -> tuple[int, int]:
        return self.down.shape[1], self.across.shape[1]

    def masks(self, grids: Tensor) -> Tensor:
        """(M, H, W) in [0, 1] from (M, nodes, nodes)."""
        found = []
        for part in self._parts(grids):
            values, say = self._around(part)
            found.append(values.mul_(say).sum((2, 4)) / say.sum((2, 4)))
        return torch.cat(found)

    def slopes(self, grids: Tensor, masks: Tensor, pull: Tensor) -> Tensor:
        """(M, nodes, nodes): how (M, H, W) pulls at the masks' pixels add up at the nodes."""
        found = []
        for part, mask, force in zip(*map(self._parts, (grids, masks, pull)), strict=True):
            values, say = self._around(part)
            force = force / say.sum((2, 4))
            shares = values.sub_(mask[:, :, None, :, None]).mul_(COLDNESS).add_(1).mul_(say).mul_(self.kernel)
            shares.mul_(force[:, :, None, :, None])
            found.append(self.down.T @ (shares.flatten(3) @ self.across).flatten(1, 2))  # a scattered sum, repeatable
        return torch.cat(found)

    def _parts(self, values: Tensor) -> tuple[Tensor, ...]:
        return torch.split(values, max(1, AT_ONCE // self.kernel.numel()))

    def _around(self, grids: Tensor) -> tuple[Tensor, Tensor]:
        """(M, H, K, W, K) each: what the nodes around a pixel would make of it, and how much they have to say."""
        values = grids[:, self.rows][:, :, :, self.columns].mul_(self.kernel)
        return values, (COLDNESS * values).add_(self.handicap).exp_()


def brush(images: Tensor) -> Brush:
    """Nodes every 7 pixels at a height of 224, which count up to four such steps away."""
    step = max(1, round(7 * images.shape[2] / 224))
    sigma, reach = 3 * step, torch.arange(-4, 5, device=images.device)
    sides = [torch.arange(side, device=images.device)[:, None] for side in images.shape[2:]]
    nodes = [-(-side // step) for side in images.shape[2:]]
    near = [side // step + reach for side in sides]  # (side, K)
    gaps = [
        (side - step * place).to(images.dtype).masked_fill((place < 0) | (place >= count), torch.inf)
        for side, place, count in zip(sides, near, nodes, strict=True)
    ]
    distance = torch.hypot(gaps[0][:, :, None, None], gaps[1])  # (H, K, W, K)
    kernel = (-2 * (distance / sigma - 0.5).clamp(min=0).square()).exp()
    handicap = torch.full_like(distance, -COLDNESS).masked_fill_(distance > sigma + step, -torch.inf)
    rows, columns = (place.clamp(0, count - 1) for place, count in zip(near, nodes, strict=True))
    down, across = (
        F.one_hot(place, count).flatten(0, 1).to(images.dtype)
        for place, count in zip((rows, columns), nodes, strict=True)
    )
    return Brush(rows, columns, kernel, handicap, down, across)


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


def sharpened(masks: Tensor, references: Tensor) -> Tensor:
    """The (A, N, H, W) masks with the values of (A, H W) sorted references instead, in the order of their pixels."""
    flat = masks.flatten(2)
    order = flat.argsort(dim=2, stable=True)
    return torch.empty_like(flat).scatter_(2, order, references[:, None].expand_as(flat)).view_as(masks)


def references(areas: Sequence[float], like: Tensor) -> Tensor:
    """(A, H W): the sorted pixels of a sharp mask of each area, zeros and then ones, for images or masks like these."""
    count = like.shape[-2:].numel()
    places = torch.arange(count, device=like.device)
    zeros = torch.tensor([round((1 - area) * count) for area in areas], device=like.device)
    return (places >= zeros[:, None]).to(like.dtype)
