"""Monotonicity: whether pixels that a map ranks higher matter more to the model, in the definitions of three papers."""

from collections.abc import Generator
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.correlation import pearson, spearman
from saliometer.maps import minmax, ranks
from saliometer.metrics._curves import odds
from saliometer.metrics._masked import blank, blank_odds, own_odds
from saliometer.perturb import filled, masked
from saliometer.registry import metric, one_of
from saliometer.seeds import fork, forks
from saliometer.types import Measuring, Question, Samples, Scored, Scores, Subject

DEFINITIONS = ("nguyen", "arya", "arya_share", "cumulative_pearson")


@metric(
    better="higher",
    formula="Spearman’s ρ over sets S, cut by rank: mean of m over S with the mean of (p(x with S noise) ⁄ p(x) − 1)²",
    bounds=(-1.0, 1.0),
    reads="order",
    passes=1793,
    quick={"sets": 4, "fills": 2},
    random=True,
    degenerate=(
        "invalid, for all sets are the same (the other definitions: that of a random order)",
        "invalid, for all sets are the same (the other definitions: that of a random order)",
        "between -r and r, where r is the root of 3 / (sets + 1)",
    ),
)
def monotonicity(
    maps: Tensor, samples: Samples, subject: Subject, *,
    definition: str = "nguyen", sets: int = 224, fills: int = 8, ties: str = "seed", space: str = "raw",
) -> Measuring:  # fmt: skip
    """Rank correlation of what a set of pixels has on the map with what the model loses without it.

    Pixels are cut by rank into `sets` of equal size. `nguyen`: Spearman of a set's mean attribution with the expected
    squared change of p, relative to p, when that set alone is noise, over `fills` draws. The others let sets come back
    into an image of raw black or normalised grey (`space`), the lowest first: `arya` is 1 if p never falls,
    `arya_share` the share of steps at which it does not, `cumulative_pearson` the correlation of p with the map's sum
    over what is shown. For that sum the map, its highest channel, goes from 0 to 1 by its own minimum and maximum,
    whatever the normalisation; a constant one is 1 everywhere.
    """
    one_of("definition", definition, DEFINITIONS)
    if sets < 2 or fills < 1:
        raise ValueError(f"sets={sets} and fills={fills}: wanted 2 sets or more, and 1 fill or more")
    places = ranks(maps, samples.batch.seeds, ties=ties)
    sizes = set_sizes(maps[0].numel(), sets)
    members = torch.searchsorted(sizes.cumsum(0).to(maps.device) - 1, places)  # set 0 has the highest pixels
    if definition == "nguyen":
        return (yield from _nguyen(maps, members, sizes, samples, subject, fills))
    curve = yield from _coming_back(members, len(sizes), samples, subject, f"{len(sizes)} {ties}", space)
    if definition == "cumulative_pearson":
        mass = set_means(_scaled(maps), sizes).mul(sizes.to(maps.device)).flip(1).cumsum(1)
        return _correlated(pearson(mass, curve[1:].sigmoid().T))
    share = (curve[1:] >= curve[:-1]).double().mean(0)
    return share if definition == "arya_share" else (share == 1).double()


def _nguyen(
    maps: Tensor, members: Tensor, sizes: Tensor, samples: Samples, subject: Subject, fills: int
) -> Generator[Question, Tensor, Scored]:
    before = yield from own_odds(samples)
    count = len(sizes)
    images, seeds = samples.batch.images, samples.batch.seeds

    @lru_cache(maxsize=1)
    def noise(fill: int) -> Tensor:
        return filled(subject.model, images, "uniform", seeds=forks(fork("monotonicity", fill), seeds))

    def variants(ks: range) -> Tensor:
        """Copy k has fill k // count in set k % count."""
        made = []
        for fill in range(ks[0] // count, ks[-1] // count + 1):
            first, last = max(ks.start, fill * count), min(ks.stop, (fill + 1) * count)
            chosen = torch.arange(first, last, device=members.device) - fill * count
            here = (members == chosen.view(-1, 1, 1, 1))[:, :, None].to(images.dtype)
            made.append(masked(noise(fill), here, images))
        return made[0] if len(made) == 1 else torch.cat(made)

    after = yield Scores(variants, count * fills, of="log_odds")
    relative = (F.logsigmoid(after.double()) - F.logsigmoid(before)).expm1()  # to p, exact however small p is
    change = relative.square().unflatten(0, (fills, count)).mean(0).T
    return _correlated(spearman(set_means(maps.double(), sizes), change))


def _coming_back(
    members: Tensor, count: int, samples: Samples, subject: Subject, kind: str, space: str
) -> Generator[Question, Tensor, Tensor]:
    """(count + 1, N) float64: the target's log-odds while sets return to a blank image, the lowest first."""
    images, empty = samples.batch.images, blank(samples, subject, space)
    none = yield from blank_odds(samples, subject, space)
    whole = yield from own_odds(samples)

    def variants(ks: range) -> Tensor:
        hidden = count - 1 - torch.arange(ks.start, ks.stop, device=members.device).view(-1, 1, 1, 1)
        return masked(images, (members >= hidden)[:, :, None].to(images.dtype), empty)

    between = yield from odds(variants, count - 1, f"coming back {kind} {space}", whole)
    return torch.cat((none[None], between, whole[None]))


def set_sizes(pixels: int, sets: int) -> Tensor:
    """(K,) int64: as equal as they can be, none empty; the sets of the highest pixels take what is left over."""
    count = min(sets, pixels)
    return torch.full((count,), pixels // count) + (torch.arange(count) < pixels % count)


def set_means(maps: Tensor, sizes: Tensor) -> Tensor:
    """(N, K): each set's mean, the highest pixels first, exactly the value of its pixels where they are equal."""
    parts = maps.flatten(1).sort(1, descending=True).values.split(sizes.tolist(), 1)
    return torch.stack([part[:, 0] + (part - part[:, :1]).mean(1) for part in parts], 1)


def _scaled(maps: Tensor) -> Tensor:
    """From 0 to 1, and 1 where a map is constant: every pixel counts the same."""
    return minmax(maps.double()).nan_to_num(1.0)


def _correlated(values: Tensor) -> Scored:
    return Scored(values, invalid={"sets or scores that are all the same have no correlation": values.isnan()})
