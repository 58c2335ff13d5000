"""Faithfulness correlation: whether pixels that a map rates high move the score when they go (Bhatt et al., 2020)."""

import torch
from torch import Tensor

from saliometer.metrics._draws import drawn
from saliometer.perturb import filled
from saliometer.registry import metric, one_of
from saliometer.seeds import uniform
from saliometer.types import Measuring, Samples, Scored, Scores, Subject, unaltered

OUTPUTS = ("logit", "probability")
FILLS = ("black", "mean_colour")
SHARE = 224  # one pixel of so many goes
ROOM = 1 << 22  # random numbers that are drawn together
ROUNDING = 1e-7  # of a score: outputs that differ by less do not differ


@metric(
    better="higher",
    formula="Pearson’s r over random sets S of pixels: Σ E over S with f(x) − f(x with S black)",
    bounds=(-1, 1),
    reads="signed",
    random=True,
    passes=101,
    quick={"runs": 8},
    parts={"spread": ""},
    degenerate=(
        "invalid, its sums are all alike",
        "invalid, its sums are all alike",
        "invalid where it is never drawn",
    ),
)
def faithfulness_correlation(
    maps: Tensor, samples: Samples, subject: Subject, *, runs: int = 100, fill: str = "black", output: str = "logit"
) -> Measuring:
    """Pearson's correlation, over random sets of pixels, of the map's sum there and of the score's fall without them.

    A set is one pixel in 224, all its channels, shown black or in the image's mean colour. One image's value means
    little, by chance it spreads by 1/sqrt(runs - 1). `spread` is the standard deviation of the score's falls.
    """
    one_of("fill", fill, FILLS)
    one_of("output", output, OUTPUTS)
    if runs < 2:
        raise ValueError(f"faithfulness_correlation: runs={runs}, wanted 2 or more for a correlation")
    images = samples.batch.images
    sets = chosen(samples, runs)
    flat = images.mean((2, 3), keepdim=True) if fill == "mean_colour" else filled(subject.model, images, fill)
    blank = flat.expand_as(images).flatten(2)

    def without(ks: range) -> Tensor:
        places = sets[ks.start : ks.stop, :, None].expand(-1, -1, images.shape[1], -1)
        copies = images.flatten(2).repeat(len(ks), 1, 1, 1)
        return copies.scatter_(3, places, blank.expand_as(copies).gather(3, places)).view(len(ks), *images.shape)

    whole = (yield Scores(unaltered(images), of=output, key="image"))[0].double()
    rest = yield Scores(without, runs, of=output, key=f"image faithfulness_correlation {fill}")
    falls = whole - rest.double()
    sums = maps.flatten(1).double().expand(runs, -1, -1).gather(2, sets).sum(2)
    spread = falls.std(0, correction=0)
    invalid = {
        "the map's sums are all alike": sums.std(0, correction=0) <= 1e-12 * sums.abs().amax(0),
        "the score does not move": spread <= ROUNDING * whole.abs(),
    }
    return Scored(correlations(sums, falls), {"spread": spread}, invalid)


def chosen(samples: Samples, runs: int) -> Tensor:
    """(runs, N, k) int64: the pixels of every random set."""
    pixels = samples.batch.images[0, 0].numel()
    size = max(1, round(pixels / SHARE))
    seeds = samples.batch.seeds
    together = max(1, ROOM // (pixels * len(seeds)))
    found = []
    for first in range(0, runs, together):
        some = drawn(seeds, "faithfulness_correlation", range(first, min(first + together, runs)))
        found.append(uniform(some, "set", pixels).topk(size).indices.view(-1, len(seeds), size))
    return torch.cat(found)


def correlations(one: Tensor, other: Tensor) -> Tensor:
    """(N,): Pearson's over the first dimension."""
    one, other = one - one.mean(0), other - other.mean(0)
    sizes = one.square().sum(0).sqrt() * other.square().sum(0).sqrt()
    return ((one * other).sum(0) / sizes).clamp(-1, 1)
