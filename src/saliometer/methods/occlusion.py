"""Occlusion: how far the score drops while a window hides a part of the image (Zeiler and Fergus, 2014)."""

import torch
from torch import Tensor

from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import SCORES, Asking, Batch, Model, Scores


@method(hides=True, passes=625)
def occlusion(
    model: Model, batch: Batch, *, window: int = 0, stride: int = 0, fill: str = "zero", output: str = "logit"
) -> Asking:
    """The mean drop in score over all windows that hide a pixel; 0 takes a 7th of each side, in steps of a 28th."""
    one_of("output", output, SCORES)
    images = batch.images
    blank = filled(model, images, fill, references=batch.references, seeds=batch.seeds)
    rows, columns = (_covers(side, window, stride, images) for side in images.shape[2:])
    windows = len(rows) * len(columns)

    def hidden(ks: range) -> Tensor:
        k = torch.arange(ks.start, ks.stop, device=images.device)
        inside = rows[k // len(columns) % len(rows), :, None] & columns[k % len(columns), None, :]
        inside = inside & (k < windows)[:, None, None]  # the last copy is the whole image
        return torch.where(inside[:, None, None], blank, images)

    key = f"image occlusion {window} {stride} {fill}"
    scores = (yield Scores(hidden, windows + 1, output, key=key)).double()
    drops = (scores[-1] - scores[:-1]).T.reshape(len(batch), len(rows), len(columns))
    summed: Tensor = rows.mT.double() @ drops @ columns.double()
    return (summed / (rows.sum(0)[:, None] * columns.sum(0)))[:, None].to(images.dtype)


def _covers(side: int, window: int, stride: int, images: Tensor) -> Tensor:
    """(places, side) bool: what each place of the window hides along one side; the last one ends at the border."""
    width = min(window or max(1, round(side / 7)), side)
    step = stride or min(width, max(1, round(side / 28)))
    if window < 0 or stride < 0 or step > width < side:
        came = f"window={window}, stride={stride}"
        raise ValueError(f"occlusion: {came}; wanted a stride of 1 or more, up to the window, or 0 for the default")
    starts = torch.tensor([*range(0, side - width, step), side - width], device=images.device)[:, None]
    places = torch.arange(side, device=images.device)
    return (places >= starts) & (places < starts + width)
