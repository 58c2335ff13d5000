"""Small pictures of a few pairs, so that a report can show what COSE compares without a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.cose.table import CHANGED, DATA, UNCHANGED, group_of

if TYPE_CHECKING:
    from saliometer.engine.compared import Rows

IMAGES, SIDE = 8, 56  # of how many images, and how large at most
ALWAYS = ("flip_lr", "equalize")  # changes of which a picture is kept whatever they do
ITSELF, ALIKE, APART = "itself", "alike", "apart"
PLACES = (ITSELF, *ALWAYS, ALIKE, APART)  # the image; then the pair that keeps its prediction and whose maps are most
# alike, and the one that changes it and whose maps are least so


def chosen(own: Tensor, maps: Sequence[Tensor], rows: Sequence["Rows"]) -> dict[str, npt.NDArray[Any]]:
    """Arrays (images, PLACES): conditions, similarities, whether the prediction changed, and maps in 8 bits.

    `own` (N, H, W) are the maps of the images, `maps` and `rows` those of every change in the same order, all as COSE
    reads them, in [0, 1]. Where there is no such pair the condition is ''.
    """
    count = min(len(own), IMAGES)
    empty = torch.zeros_like(own[0])
    conditions, similar, changed, shown = [], [], [], []
    for image in range(count):
        held = [
            (row.conditions[image], row.metrics[image], row.values[image], m) for row, m in zip(rows, maps, strict=True)
        ]
        data = [one for one in held if group_of(one[0]) in DATA and one[2] == one[2]]
        found = {name: one for one in data for name in ALWAYS if one[0] == name}
        same, other = ([one for one in data if one[1] == metric] for metric in (UNCHANGED, CHANGED))
        if same:
            found[ALIKE] = max(same, key=lambda one: one[2])
        if other:
            found[APART] = min(other, key=lambda one: one[2])
        picked = [found.get(place) for place in PLACES[1:]]
        conditions.append([ITSELF, *(one[0] if one else "" for one in picked)])
        similar.append([1.0, *(one[2] if one else float("nan") for one in picked)])
        changed.append([False, *(one is not None and one[1] == CHANGED for one in picked)])
        shown.append(torch.stack([own[image], *(one[3][image] if one else empty for one in picked)]))
    return {
        "conditions": np.array(conditions), "similar": np.array(similar), "changed": np.array(changed),
        "maps": _small(torch.stack(shown)),
    }  # fmt: skip


def _small(maps: Tensor) -> npt.NDArray[np.uint8]:
    """(..., h, w) of maps (..., H, W)."""
    share = min(1.0, SIDE / max(maps.shape[-2:]))
    height, width = (max(1, round(side * share)) for side in maps.shape[-2:])
    small = F.adaptive_avg_pool2d(maps.nan_to_num(0.0).flatten(0, -3)[:, None].float(), (height, width))
    levels = (small.clamp(0, 1) * 255).round().byte()
    found: npt.NDArray[np.uint8] = levels.view(*maps.shape[:-2], height, width).cpu().numpy()
    return found
