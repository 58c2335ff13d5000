"""Relevance on its way through a network: as a product that is not multiplied out, divided with exact books."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saliometer import fused
from saliometer.graph import RefusedError

NO_BIAS = torch.zeros(())


@dataclass(frozen=True, eq=False)
class Sloped:
    """Relevance as a step's value times a slope: who shares in proportion to values hands on slopes alone."""

    value: Tensor
    slope: Tensor
    cut: bool = False  # the value is what the step's ReLU makes of it: 0 where it is closed

    def __add__(self, other: "Relevance") -> "Relevance":
        if isinstance(other, Sloped) and other.value is self.value:
            return replace(self, slope=self.slope + other.slope)
        return whole(self) + whole(other)

    __radd__ = __add__

    @property
    def uncut(self) -> Tensor:
        """The slope by the step's own value."""
        if not self.cut:
            return self.slope
        return torch.ops.aten.threshold_backward(self.slope, self.value, 0)  # type: ignore[no-any-return]


Relevance = Tensor | Sloped


def whole(relevance: Relevance) -> Tensor:
    return relevance.value * relevance.slope if isinstance(relevance, Sloped) else relevance


class MixedError(RefusedError):
    """Nothing says which of the rows inside a network belong to which image."""


class Books:
    """Where relevance goes that does not reach the inputs: to biases, to the stabiliser, or lost at a zero."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}
        self._most: dict[str, list[Tensor]] = {}
        self.checks: list[Callable[[], None]] = []  # that wait for a GPU, so they are made when the walk is over

    def note(self, fact: str, values: Tensor) -> None:
        """Keep the largest size of each image's values."""
        self._most.setdefault(fact, []).append(torch.linalg.vector_norm(by_row(values), torch.inf, dim=1))

    def add(self, part: str, amounts: Tensor) -> None:
        """Sums over places, which are short, are made as they come; those over channels and layers in `totals`."""
        self._parts.setdefault(part, []).append(summed(amounts))

    def add_bias(self, quotient: Tensor, bias: Tensor) -> None:
        """What a bias gets; where it has one value for each channel, the quotient is summed first, which reads less."""
        if bias.ndim == quotient.ndim - 1 == 3:
            quotient, bias = summed(quotient), bias.flatten()
        if bias.ndim:
            self.add("bias", quotient * bias)

    def totals(self, images: int) -> dict[str, Tensor]:
        """(images,) float64 for each part."""
        return {part: _rows(some, images).sum(1, dtype=torch.float64) for part, some in self._parts.items()}

    def largest(self, images: int) -> dict[str, Tensor]:
        """(images,) float64 for each fact."""
        return {fact: _rows(some, images).amax(1).double() for fact, some in self._most.items()}


def summed(values: Tensor) -> Tensor:
    """(rows, channels): summed over places."""
    return values.sum(tuple(range(2, values.ndim))) if values.ndim > 2 else by_row(values)


def by_row(values: Tensor) -> Tensor:
    """(rows, values): also of values (rows,), one for each."""
    return values.reshape(len(values), -1)


def _rows(values: Sequence[Tensor], images: int) -> Tensor:
    """Side by side, (images, ...); of one image all rows are its own."""
    if images > 1 and any(len(one) != images for one in values):
        raise MixedError("images do not stay along the first dimension inside the network: explain one at a time")
    return torch.cat([one.reshape(images, -1) for one in values], 1)


def divided(
    relevance: Relevance,
    total: Tensor,
    bias: Tensor,
    books: Books,
    *,
    missing: bool = False,
    epsilon: float = 0.0,
    smallest: float = 0.0,
    share: float = 1.0,
) -> Tensor:
    """A share of R / (total + epsilon), where epsilon takes the total's sign; what stands over a zero is lost.

    The bias is one of the total's parts, or still `missing` there. A total of no more than `smallest` counts as zero.
    """
    offset = bias if missing else NO_BIAS
    by_channel = total.ndim == 4 and bias.ndim in (0, 3)
    if by_channel and isinstance(relevance, Sloped) and (kernels := fused.kernels(relevance.slope, total)):
        quotient: Tensor
        given = relevance.value, relevance.slope, total, offset
        quotient, (sums, lost, held) = kernels.divided(*given, share, epsilon, smallest)
        books.add("lost", lost)
        if epsilon:
            books.add("epsilon", held)
        books.add_bias(sums, bias.flatten() if bias.ndim else bias)
        return quotient
    relevance = whole(relevance) if share == 1 else share * whole(relevance)
    total = total + offset if offset.ndim else total
    if epsilon:
        stabiliser = torch.copysign(total.new_full((), epsilon), total)
        quotient = relevance / (total + stabiliser)  # never 0
        books.add("epsilon", quotient * stabiliser)
    else:
        quotient = over(relevance, total, books, smallest)
    books.add_bias(quotient, bias)
    return quotient


def over(relevance: Tensor, total: Tensor, books: Books, smallest: float = 0.0) -> Tensor:
    """R / total; what stands over a zero is lost."""
    zero = total.abs() <= smallest if smallest else total == 0
    books.add("lost", torch.where(zero, relevance, 0))
    return (relevance / total).masked_fill_(zero, 0)


def largest_share(part: Tensor, total: Tensor, slope: Tensor) -> Tensor:
    """(images, ...): of a sum of two parts, the largest share that either has of it, wherever the slope is not 0."""
    if total.ndim == 4 and (kernels := fused.kernels(slope, total)):
        return kernels.largest_share(part, total, slope)  # type: ignore[no-any-return]
    closed = (slope == 0) | (total == 0)
    share = (part / total).masked_fill_(closed, 0.5)  # a half, for that is the least the larger of two can be
    low, high = by_row(share).aminmax(dim=1)
    return torch.stack((low, high, 1 - low, 1 - high), 1) * ~by_row(closed).all(1, keepdim=True)
