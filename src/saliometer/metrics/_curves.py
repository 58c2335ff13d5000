"""What insertion and deletion share: the target's score while pixels change, the highest of a map first."""

from collections.abc import Generator

import torch
from torch import Tensor

from saliometer.maps import ranks
from saliometer.perturb import masked
from saliometer.types import Question, Samples, Scores, Variants


def steps_of(pixels: int, steps: int) -> tuple[int, int]:
    """How many pixels change in a step, and how many steps it takes; the last may have fewer."""
    if steps < 1:
        raise ValueError(f"steps={steps}: wanted 1 or more")
    width = -(-pixels // steps)
    return width, -(-pixels // width)


def swapped(places: Tensor, width: int, start: Tensor, end: Tensor, first: int = 0) -> Variants:
    """Copy k: `end` at the first (first + k) * width of `places` (N, H, W), ranks from 0, and `start` elsewhere."""

    def variants(ks: range) -> Tensor:
        done = width * (first + torch.arange(ks.start, ks.stop, ks.step, device=places.device))
        return masked(end, (places < done.view(-1, 1, 1, 1))[:, :, None].to(end.dtype), start)

    return variants


def area(
    maps: Tensor, samples: Samples, start: Tensor, end: Tensor, ends: tuple[Tensor, Tensor], key: str, *,
    steps: int, ties: str, draws: int,
) -> Generator[Question, Tensor, Tensor]:  # fmt: skip
    """(N,) float64: the area under the curve of the target's probability from image `start` to image `end`.

    `ends` are the log-odds there; where a map has ties it is the mean over `draws` orders.
    """
    if draws < 1:
        raise ValueError(f"draws={draws}: wanted 1 or more")
    tied = tied_maps(maps) if ties == "seed" and draws > 1 else torch.zeros_like(ends[0], dtype=torch.bool)
    width, count = steps_of(maps[0].numel(), steps)
    found = []
    for draw in range(draws if draws > 1 and bool(tied.any()) else 1):
        places = ranks(maps, samples.batch.seeds, ties=ties, draw=draw)
        inner = swapped(places, width, start, end, first=1)
        between = yield from odds(inner, count - 1, f"{key} {count} {ties} {draw}", ends[0])
        found.append(trapezoid(torch.cat((ends[0][None], between, ends[1][None])).sigmoid()))
    return torch.where(tied, torch.stack(found).mean(0), found[0])


def odds(variants: Variants, count: int, key: str, like: Tensor) -> Generator[Question, Tensor, Tensor]:
    """(count, N) float64: the target's log-odds on each copy, also where there is none."""
    if not count:
        return like.new_empty(0, len(like))
    return (yield Scores(variants, count, of="log_odds", key=key)).double()


def trapezoid(curve: Tensor) -> Tensor:
    """(N,): the area under points (n + 1, N) at equal distances, 1 from end to end."""
    return (curve.sum(0) - (curve[0] + curve[-1]) / 2) / (len(curve) - 1)


def tied_maps(maps: Tensor) -> Tensor:
    """(N,) bool: maps with two equal pixels."""
    values = maps.flatten(1).sort(1).values
    return (values[:, 1:] == values[:, :-1]).any(1)
