"""ROAD, remove and debias: the score while pixels are replaced by what their neighbours say (Rong et al., 2022)."""

from collections.abc import Generator
from functools import lru_cache

import torch
from torch import Tensor

from saliometer.maps import ranks
from saliometer.metrics._fill import restored, together
from saliometer.registry import metric, one_of
from saliometer.seeds import normal
from saliometer.types import Logits, Measuring, Model, Question, Samples, Scored, Scores, Subject, Variants

ORDERS = ("both", "morf", "lerf")
SCORES = ("probability", "logit", "accuracy")


@metric(
    better="higher",
    formula="½ · mean over shares s of (p(x, lowest s filled) − p(x, highest s filled)), by neighbours and noise",
    turned=("order=morf",),
    bounds=(-0.5, 0.5),
    reads="order",
    passes=18,
    quick={"shares": "30,60"},
    random=True,
    parts={"morf": "lower", "lerf": "higher"},
    degenerate=("about 0, by lot", "about 0, by lot", "that pixel first, the others by lot"),
)
def road(
    maps: Tensor, samples: Samples, subject: Subject, *, order: str = "both",
    shares: str = "10,20,30,40,50,60,70,80,90", score: str = "probability", noise: float = 0.01, ties: str = "seed",
) -> Measuring:  # fmt: skip
    """(LeRF - MoRF) / 2: mean scores with the lowest and with the highest pixels replaced by their neighbours' mean.

    `shares` are the percentages removed; `noise` the standard deviation added to what is filled in, in pixels from 0
    to 1; `score=accuracy` asks whether the target is still predicted. Both parts are always given; `order` says which
    value stands as the metric's own, and with `morf` lower is better.
    """
    one_of("order", order, ORDERS)
    one_of("score", score, SCORES)
    if noise < 0:
        raise ValueError(f"metric 'road': noise={noise}, wanted 0 or more")
    percentages = parsed(shares)
    places = ranks(maps, samples.batch.seeds, ties=ties)
    orders = torch.stack((places, places[0].numel() - 1 - places))
    copies = _removed(samples, subject.model, orders, percentages, noise)
    key = f"road {percentages} {noise} {ties}"
    curves = yield from _scored(copies, 2 * len(percentages), samples, score, key)
    morf, lerf = curves.unflatten(0, (2, -1)).mean(1)
    parts = {"morf": morf, "lerf": lerf}
    value = (lerf - morf) / 2 if order == "both" else parts[order]
    unsolved = curves.isnan().any(0)
    return Scored(value, parts, {"a filled image has no score: its fill was not found": unsolved})


def parsed(shares: str) -> list[float]:
    """Percentages, each more than 0 and less than 100."""
    try:
        found = [float(word) for word in shares.split(",")]
    except ValueError:
        found = []
    if not found or not all(0 < share < 100 for share in found):
        raise ValueError(f"metric 'road': shares='{shares}', wanted percentages between 0 and 100 such as '20,40,60'")
    return found


def _removed(samples: Samples, model: Model, orders: Tensor, shares: list[float], noise: float) -> Variants:
    """Copies with a share of the pixels, those of the lowest places, filled in, for each of the orders (2, N, H, W).

    They are solved for in groups that are made when they are asked for, however few are asked for at a time.
    """
    images, seeds = samples.batch.images, samples.batch.seeds
    mean, std = (model.channels(images, values) for values in (model.mean, model.std))
    pixels, size = model.pixels(images), images[0, 0].numel()
    asked = [(places, share) for places in orders for share in shares]
    group = max(1, together(images) // len(images))

    @lru_cache(maxsize=1)
    def solved(first: int) -> Tensor:
        some = asked[first : first + group]
        missing = torch.stack([places < round(share / 100 * size) for places, share in some])
        filled = restored(pixels.repeat(len(some), 1, 1, 1), missing.flatten(0, 1)).unflatten(0, (len(some), -1))
        if noise:
            drawn = {share: noise * normal(seeds, f"road {share}", like=images) for _, share in some}
            filled += torch.stack([drawn[share] for _, share in some])
        return torch.where(missing[:, :, None], (filled - mean) / std, images)

    def copies(ks: range) -> Tensor:
        firsts = range(ks.start - ks.start % group, ks.stop, group)
        parts = [solved(first)[max(ks.start - first, 0) : ks.stop - first] for first in firsts]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    return copies


def _scored(
    copies: Variants, count: int, samples: Samples, score: str, key: str
) -> Generator[Question, Tensor, Tensor]:
    """(count, N) float64: each copy's score; NaN where the copy could not be made."""
    if score == "accuracy":
        logits = yield Logits(copies, count, key=key)
        return (logits.argmax(2) == samples.batch.targets).double().where(~logits.isnan().any(2), torch.nan)
    if score == "logit":
        return (yield Scores(copies, count, key=key)).double()
    return (yield Scores(copies, count, of="log_odds", key=key)).double().sigmoid()
