"""LIME: a linear model of the score, fitted to copies with segments switched off (Ribeiro et al., 2016)."""

import torch
from torch import Tensor

from saliometer.methods._masks import cut, flat, painted, segment_means, sizes, switched
from saliometer.perturb import FILLS, filled
from saliometer.registry import method, one_of
from saliometer.seeds import forks, uniform
from saliometer.types import SCORES, Asking, Batch, Explained, Model, Scores

SHOWN = 10  # segments that paint=sign_top10 marks


@method(hides=True, random=True, quick={"samples": 30, "segments": "grid", "cells": 3}, passes=1000, budget="samples")
def lime(
    model: Model,
    batch: Batch,
    *,
    samples: int = 1000,
    kernel_width: float = 0.25,
    segments: str = "quickshift",
    max_dist: float = 200.0,
    cells: int = 7,
    on: str = "pixels",
    fill: str = "segment_mean",
    output: str = "probability",
    paint: str = "coef",
) -> Asking:
    """The coefficients of a ridge regression of the score on which segments are on; no contributions, so no sum."""
    one_of("fill", fill, ("segment_mean", *FILLS))
    one_of("output", output, SCORES)
    one_of("paint", paint, PAINTS)
    if samples < 2 or kernel_width <= 0:
        came = f"samples={samples}, kernel_width={kernel_width}"
        raise ValueError(f"lime: {came}; wanted samples of 2 or more, kernel_width above 0")
    images = batch.images
    labels = cut(model, images, segments, max_dist=max_dist, cells=cells, on=on)
    present = sizes(labels) > 0  # (N, S)
    if fill == "segment_mean":
        blank = segment_means(images, labels)
    else:
        blank = filled(model, images, fill, references=batch.references, seeds=batch.seeds)
    switches = _coins(batch.seeds, samples, present)
    key = f"image lime {samples} {segments} {max_dist} {cells} {on} {fill}"
    scores = yield Scores(switched(images, blank, labels, switches), samples, output, key=key)
    coefficients, fit = ridge(switches, scores, nearness(switches, present, kernel_width))
    still, count = flat(scores), present.sum(1)
    return Explained(
        painted(PAINTS[paint](coefficients), labels).to(images.dtype),
        flags={"one_segment": count == 1, "flat_score": still},
        facts={"r2": fit.masked_fill(still, 0), "segments": count},
    )


def nearness(switches: Tensor, present: Tensor, kernel_width: float) -> Tensor:
    """(count, N) float64: the weight of each copy by its cosine distance from the whole image."""
    share = switches.sum(2, dtype=torch.float64) / present.sum(1)
    return (-0.5 * ((1 - share.sqrt()) / kernel_width).square()).exp()


def ridge(switches: Tensor, scores: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """(N, S) coefficients and (N,) weighted R^2 in float64; penalty 1, none for the intercept."""
    rows = switches.transpose(0, 1).double()  # (N, count, S)
    values, weight = scores.T.double()[..., None], weights.T.double()[..., None]
    share = weight / weight.sum(1, keepdim=True)
    rows = rows - (share * rows).sum(1, keepdim=True)
    values = values - (share * values).sum(1, keepdim=True)
    penalty = torch.eye(rows.shape[2], dtype=rows.dtype, device=rows.device)
    weighted = (weight * rows).mT
    coefficients = torch.linalg.solve(weighted @ rows + penalty, weighted @ values)
    missed = (weight * (values - rows @ coefficients).square()).sum((1, 2))
    spread = (weight * values.square()).sum((1, 2))
    return coefficients[..., 0], 1 - missed / spread.where(spread > 0, 1)


def _coins(seeds: Tensor, samples: int, present: Tensor) -> Tensor:
    """(samples, N, S) bool: all on, then fair coins; segments that an image does not have are never on."""
    streams = forks(seeds[:, None], torch.arange(samples, device=seeds.device))
    lots = uniform(streams.flatten(), "lime", present.shape[1]).view(*streams.shape, -1).transpose(0, 1)
    coins = lots < 0.5
    coins[0] = True
    return coins & present


def _sign_top(coefficients: Tensor) -> Tensor:
    """The sign of the segments with the largest coefficients, 0 for the others."""
    largest = coefficients.abs().argsort(dim=1, descending=True, stable=True)[:, :SHOWN]
    return torch.zeros_like(coefficients).scatter(1, largest, coefficients.sign().gather(1, largest))


PAINTS = {"coef": lambda coefficients: coefficients, "sign_top10": _sign_top, "positive": torch.relu}
