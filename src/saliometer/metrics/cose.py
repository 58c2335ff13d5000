"""COSE: do maps stay when the prediction stays, and move when it moves (Daroya et al., 2023)."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from saliometer.correlation import mean_ranks, pearson
from saliometer.cose.ssim import global_ssim, ssim
from saliometer.registry import metric, one_of
from saliometer.types import Scored

MODES = ("default", "published", "equation")
SIMILARITIES = ("ssim", "pearson", "spearman")


def stage(params: Mapping[str, Any]) -> str:
    """How maps are scaled, in a row's definition."""
    published = params["mode"] == "published"
    return f"{params['mode']}_{'by_family' if published else 'abs_sum_percentile'}"


@metric(
    better="higher",
    stage=stage,
    formula="2 c s ⁄ (c + s), c the mean SSIM of pairs that keep the prediction, s = 1 − that of pairs that change it",
    bounds=(0, 4 / 3),
    pairs=True,
    passes=60,
    random=True,
    parts={
        "consistency": "higher", "sensitivity": "higher", "sensitivity_geometric": "higher",
        "sensitivity_photometric": "higher", "sensitivity_model": "higher", "discrimination": "higher",
        "geometric_mean": "higher", "correct": "", "grain": "", "unchanged": "", "changed": "",
    },
    degenerate=("0, it never moves", "0, it never moves", "0 if it never moves"),
)  # fmt: skip
def cose(
    maps: Tensor,
    others: Tensor,
    valid: Tensor | None = None,
    *,
    mode: str = "default",
    similarity: str = "ssim",
    operations: str = "all",
    magnitudes: int = 6,
    fixed_target: bool = False,
) -> Scored:
    """Whether maps stay where a change of image or model keeps the prediction, and move where it changes it.

    Here: the similarity of each pair of finished maps (N, H, W), `others` laid back over the image; `valid` (N, H, W)
    are the pixels that both have. Modes are default (R = 1), published (R = 2) and equation (the paper's eq. 2).
    """
    one_of("mode", mode, MODES)
    one_of("similarity", similarity, SIMILARITIES)
    if similarity != "ssim":
        found, why = _correlated(maps, others, valid, similarity), "a constant map has no correlation"
    elif mode == "equation":
        found, why = global_ssim(maps, others, valid), "no pixel of the image is left"
    else:
        published = mode == "published"
        found = ssim(maps, others, valid, data_range=2.0 if published else 1.0, mirrored=published)
        why = "no window of 5x5 pixels lies inside"
    broken = ~(maps.flatten(1).isfinite().all(1) & others.flatten(1).isfinite().all(1))
    return Scored(found, invalid={"nan map": broken, why: found.isnan() & ~broken})


def _correlated(maps: Tensor, others: Tensor, valid: Tensor | None, similarity: str) -> Tensor:
    """Over valid pixels: the others are set to the mean, where they count for nothing."""
    one, other = maps.flatten(1).double(), others.flatten(1).double()
    inside = torch.ones_like(one, dtype=torch.bool) if valid is None else valid.flatten(1)
    if similarity == "spearman":
        one, other = (mean_ranks(some.where(inside, torch.inf)) for some in (one, other))
    count = inside.sum(1, keepdim=True)
    one, other = (some.where(inside, some.where(inside, 0).sum(1, keepdim=True) / count) for some in (one, other))
    return pearson(one, other)
