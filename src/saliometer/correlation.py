"""Correlation of two rows of numbers, for many images at once; NaN where one of them does not vary."""

import torch
from torch import Tensor


def pearson(one: Tensor, other: Tensor) -> Tensor:
    """(N,) float64 from (N, K) twice."""
    one, other = one.double(), other.double()
    varies = (one.amax(1) > one.amin(1)) & (other.amax(1) > other.amin(1))
    one, other = (_unit(values - values.mean(1, keepdim=True)) for values in (one, other))
    return (one * other).sum(1).clamp(-1, 1).where(varies, torch.nan)


def _unit(values: Tensor) -> Tensor:
    """Of length 1; scaled twice, so that no square is lost."""
    values = values / values.abs().amax(1, keepdim=True)
    return values / values.square().sum(1, keepdim=True).sqrt()


def spearman(one: Tensor, other: Tensor) -> Tensor:
    """The same of the ranks; equal values share the mean of theirs."""
    unknown = one.isnan().any(1) | other.isnan().any(1)
    return pearson(mean_ranks(one), mean_ranks(other)).where(~unknown, torch.nan)


def mean_ranks(values: Tensor) -> Tensor:
    """(N, K) float64, 0 for the lowest."""
    ordered, order = values.contiguous().sort(1)
    count = values.shape[1]
    places = torch.arange(count, device=values.device)
    new = torch.ones_like(ordered, dtype=torch.bool)  # where a run of equal values begins, and where one ends
    torch.ne(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    ends = torch.cat((new[:, 1:], new[:, :1]), 1)
    first = places.where(new, 0).cummax(1).values
    last = places.where(ends, count).flip(1).cummin(1).values.flip(1)
    return torch.empty_like(values, dtype=torch.float64).scatter_(1, order, (first + last).double() / 2)
