"""Missing pixels as weighted means of their neighbours, solved on the images' own device (ROAD, Rong et al., 2022).

Every missing pixel is the mean of its eight neighbours, the four direct ones with twice the weight of the diagonal
ones; those outside the image are left out. That is one symmetric, positive definite system for each image and mask,
the same for all channels, and one product with its matrix is a 3x3 convolution. Conjugate gradient solves them all.
"""

from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

STEPS = 2000
RESIDUALS = {torch.float32: 1e-5, torch.float64: 1e-8}
CHECK = 4  # steps between two looks at the residuals: each look waits for the device
ROOM = {"cpu": 1 << 20, "cuda": 1 << 25}  # values of one tensor that are solved for together


def together(images: Tensor) -> int:
    """How many images (S, C, H, W) are solved for at once."""
    return max(1, ROOM.get(images.device.type, ROOM["cpu"]) // images[0].numel())


def restored(images: Tensor, missing: Tensor, *, steps: int = STEPS) -> Tensor:
    """Images (S, C, H, W) with their missing pixels (S, H, W) filled in; NaN there if the solution was not found."""
    parts = zip(images.split(together(images)), missing[:, None].split(together(images)), strict=True)
    return torch.cat([torch.where(hole, _solved(part, hole, steps), part) for part, hole in parts])


def _solved(images: Tensor, missing: Tensor, steps: int) -> Tensor:
    """(S, C, H, W), right where pixels are missing: conjugate gradient with a pyramid as preconditioner."""
    found = torch.full_like(images, torch.nan)
    hole = missing.to(images.dtype)
    weight = _around(torch.ones_like(images[:1, :1]))  # what falls inside the image: 1, or less at the border
    known = images * (1 - hole)
    wanted = _around(known) * hole
    target = RESIDUALS.get(images.dtype, 1e-5) * wanted.norm(dim=(2, 3), keepdim=True)
    places = (~missing).flatten(1).any(1).nonzero()[:, 0]  # with no pixel known there is nothing to go by
    if not len(places):
        return found
    guess = torch.where(target > 0, _coarse(known, 1 - hole), 0.0) * hole

    hole, guess, target = hole[places], guess[places], target[places]
    levels = _levels(hole, weight)
    rest = wanted[places] - _product(guess, hole, weight)
    way = _eased(rest, hole, weight, levels)
    size = _dot(rest, way)
    for step in range(steps + 1):
        if step % CHECK == 0 or step == steps:
            ready = (rest.norm(dim=(2, 3), keepdim=True) <= target).flatten(1).all(1)
            done = ready.nonzero()[:, 0]
            if len(done):
                found[places[done]] = guess[done]
                left = (~ready).nonzero()[:, 0]
                places, hole, target, levels = places[left], hole[left], target[left], [one[left] for one in levels]
                guess, rest, way, size = guess[left], rest[left], way[left], size[left]
            if not len(places):
                break
        pushed = _product(way, hole, weight)
        stride = _over(size, _dot(way, pushed))
        guess.addcmul_(way, stride)
        rest.addcmul_(pushed, -stride)
        eased = _eased(rest, hole, weight, levels)
        before, size = size, _dot(rest, eased)
        way = torch.addcmul(eased, way, _over(size, before))
    return found


def _eased(rest: Tensor, hole: Tensor, weight: Tensor, levels: list[Tensor]) -> Tensor:
    """About the inverse of the matrix times what is left: corrections on grids ever coarser (Bramble et al., 1990)."""
    sums = [rest]
    for _ in levels:
        sums.append(_down(sums[-1]))
    found = torch.zeros_like(sums[-1])
    for level, here, finer in zip(levels[::-1], sums[:0:-1], sums[-2::-1], strict=True):
        found = _up(found.addcmul_(here, level), finer)
    return torch.addcdiv(found * hole, rest, weight)


def _levels(hole: Tensor, weight: Tensor) -> list[Tensor]:
    """For each coarser grid, 1 over the matrix's diagonal there: what a bump costs inside, and at known pixels."""
    held = _around(1 - hole) * hole  # how strongly a missing pixel is held by known ones
    grids, found = [held], []
    while min(grids[-1].shape[2:]) >= 4:
        grids.append(_down(grids[-1]))
        bump = torch.zeros_like(grids[-1][:1])
        bump[..., bump.shape[2] // 2, bump.shape[3] // 2] = 1
        for finer in grids[-2::-1]:
            bump = _up(bump, finer)
        inside = _dot(bump, _product(bump, torch.ones_like(bump), weight))
        found.append(1 / (inside + bump.max() * grids[-1]))
    return found


def _down(values: Tensor) -> Tensor:
    """Sums over a grid half as fine: a coarse pixel takes 1/4, 3/4, 3/4 and 1/4 of four; `_up` is its transpose."""
    if values.is_cuda:
        return down_at_once(values)
    for side in (3, 2):
        even, odd = _halves(values, side)
        values, last = 0.75 * even, even.shape[side] - 1
        values.narrow(side, 0, odd.shape[side]).add_(odd, alpha=0.75)
        values.narrow(side, 1, last).add_(odd.narrow(side, 0, last), alpha=0.25)
        values.narrow(side, 0, last).add_(even.narrow(side, 1, last), alpha=0.25)
    return values


def _up(values: Tensor, finer: Tensor) -> Tensor:
    if values.is_cuda:
        return up_at_once(values, finer)
    for side in (2, 3):
        shape = list(values.shape)
        shape[side] = finer.shape[side]
        found, last = values.new_empty(shape), values.shape[side] - 1
        even, odd = _halves(found, side)
        torch.mul(values, 0.75, out=even)
        even.narrow(side, 1, last).add_(values.narrow(side, 0, last), alpha=0.25)
        torch.mul(values.narrow(side, 0, odd.shape[side]), 0.75, out=odd)
        odd.narrow(side, 0, last).add_(values.narrow(side, 1, last), alpha=0.25)
        values = found
    return values


def _halves(values: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Every other row or column, and those between."""
    return (values[..., ::2], values[..., 1::2]) if side == 3 else (values[..., ::2, :], values[..., 1::2, :])


def _product(values: Tensor, hole: Tensor, weight: Tensor) -> Tensor:
    """The matrix times values that are 0 outside the hole."""
    return torch.addcmul(_around(values), weight, values, value=-1).mul_(-hole)


def _around(values: Tensor) -> Tensor:
    """The weighted sum of each pixel's neighbours: 1/6 for direct ones, 1/12 for diagonal ones.

    That is 1, 2, 1 along rows and along columns without the middle; on a CPU, sums of shifted images are faster than a
    convolution.
    """
    if values.is_cuda:
        return around_at_once(values)
    total = values
    for side in (2, 3):
        line, last = total * 2, total.shape[side] - 1
        line.narrow(side, 1, last).add_(total.narrow(side, 0, last))
        line.narrow(side, 0, last).add_(total.narrow(side, 1, last))
        total = line
    return total.sub_(values, alpha=4).div_(12)


# The same three in one or two kernels, for a GPU, where a step of small ones is mostly waiting for the next.


def around_at_once(values: Tensor) -> Tensor:
    return _convolved(values, (1, 2, 1), 12, 1)


def down_at_once(values: Tensor) -> Tensor:
    height, width = values.shape[2:]
    even = F.pad(values, (0, width % 2, 0, height % 2)) if height % 2 or width % 2 else values
    return _convolved(even, (1, 3, 3, 1), 16, 2)


def up_at_once(values: Tensor, finer: Tensor) -> Tensor:
    """Bilinear interpolation between pixel centres, with zeros beyond the border."""
    large = F.interpolate(F.pad(values, (1, 1, 1, 1)), scale_factor=2, mode="bilinear", align_corners=False)
    return large[..., 2 : 2 + finer.shape[2], 2 : 2 + finer.shape[3]]


def _convolved(values: Tensor, sides: tuple[int, ...], whole: int, stride: int) -> Tensor:
    """Every channel of every image by itself, with zeros beyond the border."""
    planes = values.flatten(0, 1)[None]
    kernels = _kernel(sides, whole, values.dtype, values.device).repeat(planes.shape[1], 1, 1, 1)
    found = F.conv2d(planes, kernels, stride=stride, padding=1, groups=planes.shape[1])
    return found.view(*values.shape[:2], *found.shape[2:])


@lru_cache(maxsize=16)
@torch.inference_mode(False)  # kept for callers in any mode; a copy to the device would wait for its passes
def _kernel(sides: tuple[int, ...], whole: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(side, side): a product of sides, over `whole`; 0 in the middle if there is one."""
    line = torch.tensor(sides, dtype=torch.float64)
    kernel = torch.outer(line, line) / whole
    if len(sides) % 2:
        kernel[len(sides) // 2, len(sides) // 2] = 0
    return kernel.to(device, dtype)


def _coarse(known: Tensor, there: Tensor) -> Tensor:
    """A first guess: the mean of what is known nearby, from a pyramid of halved images."""
    if there.shape[-2:] == (1, 1):
        return _over(known, there)
    half, share = (F.avg_pool2d(one, 2, ceil_mode=True) for one in (known, there))
    below = F.interpolate(_coarse(_over(half, share), (share > 0).to(share)), size=known.shape[-2:], mode="bilinear")
    return torch.where(there > 0, known, below)


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum((2, 3), keepdim=True)


def _over(one: Tensor, other: Tensor) -> Tensor:
    """A quotient that is 0 where nothing is left to divide."""
    return torch.where(other > 0, one / other.where(other > 0, 1), 0.0)
