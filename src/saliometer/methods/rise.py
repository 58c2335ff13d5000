"""RISE: random masks, averaged with the score that the masked image keeps (Petsiuk et al., 2018)."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.methods._masks import flat
from saliometer.perturb import filled, masked
from saliometer.registry import method, one_of
from saliometer.seeds import fork, forks, uniform
from saliometer.types import SCORES, Asking, Batch, Explained, Model, Scores

Masks = Callable[[range], Tensor]  # ks -> (len(ks), H, W) in [0, 1]; pure
BLOCK = 256  # masks that exist at one time


@method(hides=True, quick={"masks": 20}, passes=4000, budget="masks", rendering="raw")
def rise(
    model: Model,
    batch: Batch,
    *,
    masks: int = 4000,
    cells: int = 7,
    keep: float = 0.5,
    fill: str = "zero",
    output: str = "probability",
    centre: bool = False,
    seed: int = 0,
) -> Asking:
    """The mean of random masks weighted by the score behind each; `seed` draws the masks, the same for all images."""
    one_of("output", output, SCORES)
    if masks < 1 or cells < 1 or not 0 < keep <= 1:
        came = f"masks={masks}, cells={cells}, keep={keep}"
        raise ValueError(f"rise: {came}; wanted masks and cells of 1 or more, keep above 0 and up to 1")
    images = batch.images
    blank = filled(model, images, fill, references=batch.references, seeds=batch.seeds)
    some = drawn(images, masks, cells, keep, seed)

    def variants(ks: range) -> Tensor:
        return masked(images, some(ks)[:, None, None], blank)

    key = f"image rise {masks} {cells} {keep} {fill} {seed}"
    scores = yield Scores(variants, masks, output, key=key)
    weights = scores - scores.mean(0) if centre else scores
    return Explained(weighted(weights, some, keep)[:, None], flags={"flat_score": flat(scores)})


def weighted(scores: Tensor, masks: Masks, keep: float) -> Tensor:
    """(N, H, W): the sum of all masks times their (count, N) scores, over `count` and the share of kept pixels."""
    count = len(scores)
    total = torch.zeros((), dtype=scores.dtype, device=scores.device)
    for start in range(0, count, BLOCK):
        block = range(start, min(start + BLOCK, count))
        total = total + torch.tensordot(scores[block.start : block.stop], masks(block), ([0], [0]))
    return total / (count * keep)


def drawn(images: Tensor, count: int, cells: int, keep: float, seed: int) -> Masks:
    """Grids of coins, enlarged to one cell more than the images' height and width, and cut out at a random place."""
    sides = images.shape[2:]
    cell = [-(-side // cells) for side in sides]
    seeds = forks(fork("rise", seed), torch.arange(count, device=images.device))
    grids = (uniform(seeds, "grids", cells, cells) < keep).to(images.dtype)[:, None]
    lots = uniform(seeds, "corners", 2)
    rows, columns = (
        (lots[:, i, None] * cell[i]).long() + torch.arange(sides[i], device=images.device) for i in (0, 1)
    )  # (count, H) and (count, W)

    def masks(ks: range) -> Tensor:
        part = slice(ks.start, ks.stop)
        size = [side * (cells + 1) for side in cell]
        large = F.interpolate(grids[part], size, mode="bilinear", align_corners=False)[:, 0]
        own = torch.arange(len(ks), device=images.device)[:, None, None]
        return large[own, rows[part, :, None], columns[part, None, :]]

    return masks
