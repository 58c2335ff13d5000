"""ROAD, remove and debias: the score while pixels are replaced by what their neighbours say (Rong et al., 2022)."""

from collections.abc import Generator

import torch
from torch import Tensor

from saliometer.maps import ranks
from saliometer.metrics._fill import restored
from saliometer.registry import metric, one_of
from saliometer.seeds import normal
from saliometer.types import Logits, Measuring, Model, Question, Samples, Scored, Scores, Subject, Variants

ORDERS = ("both", "morf", "lerf")
SCORES = ("probability", "logit", "accuracy")


@metric(
    better="higher",
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
    curves = {}
    for first, gone in {"morf": places, "lerf": places[0].numel() - 1 - places}.items():
        copies = _removed(samples, subject.model, gone, percentages, noise)
        key = f"road {first} {percentages} {noise} {ties}"
        curves[first] = yield from _scored(copies, len(percentages), samples, score, key)
    parts = {name: curve.mean(0) for name, curve in curves.items()}
    value = (parts["lerf"] - parts["morf"]) / 2 if order == "both" else parts[order]
    unsolved = torch.cat(tuple(curves.values())).isnan().any(0)
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


def _removed(samples: Samples, model: Model, places: Tensor, shares: list[float], noise: float) -> Variants:
    """Copies with a share of the pixels, those of the lowest places, filled in; made when they are asked for."""
    images, seeds = samples.batch.images, samples.batch.seeds
    std = model.channels(images, model.std)
    pixels = model.pixels(images)

    def copies(ks: range) -> Tensor:
        missing = torch.stack([places < round(shares[k] / 100 * places[0].numel()) for k in ks])
        filled = restored(pixels.repeat(len(ks), 1, 1, 1), missing.flatten(0, 1)).unflatten(0, (len(ks), -1))
        if noise:
            filled += noise * torch.stack([normal(seeds, f"road {shares[k]}", like=images) for k in ks])
        inputs = (filled - model.channels(images, model.mean)) / std
        return torch.where(missing[:, :, None], inputs, images)

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
