"""KernelSHAP: the Shapley values of segments, by weighted least squares (Lundberg and Lee, 2017)."""

import torch

from saliometer.methods._coalitions import coalitions
from saliometer.methods._masks import cut, flat, painted, sizes, switched
from saliometer.perturb import filled
from saliometer.registry import method, one_of
from saliometer.types import SCORES, Asking, Batch, Explained, Model, Scores


@method(hides=True, random=True, quick={"samples": 40, "segments": "grid", "cells": 3}, passes=2100, budget="samples")
def kernel_shap(
    model: Model,
    batch: Batch,
    *,
    samples: int = 0,
    segments: str = "quickshift",
    max_dist: float = 200.0,
    cells: int = 7,
    fill: str = "zero",
    output: str = "logit",
    paint: str = "value",
) -> Asking:
    """Shapley values of segments, which sum to the change in score; samples=0 takes 2048 and two for each segment."""
    one_of("output", output, SCORES)
    one_of("paint", paint, ("value", "density"))
    if samples < 0 or samples == 1:
        raise ValueError(f"kernel_shap: samples={samples}, wanted 2 or more, or 0 for 2048 and two for each segment")
    images = batch.images
    labels = cut(model, images, segments, max_dist=max_dist, cells=cells)
    blank = filled(model, images, fill, references=batch.references, seeds=batch.seeds)
    areas = sizes(labels)
    chosen = coalitions(batch.seeds, areas > 0, samples)
    rows = torch.cat((chosen.present[None], torch.zeros_like(chosen.present)[None], chosen.switches))
    scores = (yield Scores(switched(images, blank, labels, rows), len(rows), output)).double()
    equal = (images == blank).flatten(1).all(1)
    gains = (scores - scores[1]).masked_fill(equal, 0)
    values, change = chosen.shapley(gains[2:], gains[0]), gains[0]
    count = chosen.present.sum(1)
    return Explained(
        painted(values / areas.clamp(min=1) if paint == "density" else values, labels).to(images.dtype),
        residual=values.sum(1) - change,
        promised=change,
        flags={
            "one_segment": count == 1,
            "flat_score": flat(scores),
            "equal_baseline": equal,
            "few_samples": chosen.open,
        },
        facts={"segments": count},
    )
