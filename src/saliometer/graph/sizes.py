"""Steps for batches of any size, from captures of two: numbers that differ grow with the batch."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from saliometer.graph.capture import Step, UnfitError

SIZES = 2, 3  # of the batches that are captured


@dataclass(frozen=True, eq=False)
class Grown:
    """A number in a step's arguments that grows with the batch: base + each * images."""

    base: int
    each: int


def grown(one: Step, other: Step) -> Step:
    if one.op != other.op:
        raise UnfitError(f"{one} is {other} in larger batches")
    return replace(one, args=_compared(one.args, other.args), kwargs=_compared(one.kwargs, other.kwargs))


def _compared(one: Any, other: Any) -> Any:
    """Nested arguments, with numbers that grow where they differ."""
    if type(one) is not type(other):
        raise UnfitError("other arguments in larger batches")
    if isinstance(one, Tensor):
        if one.shape != other.shape or one.data_ptr() != other.data_ptr() or one.stride() != other.stride():
            raise UnfitError("a constant that differs in larger batches")
        return one
    if type(one) in (tuple, list):
        if len(one) != len(other):
            raise UnfitError("other arguments in larger batches")
        return type(one)([_compared(a, b) for a, b in zip(one, other, strict=True)])
    if type(one) is dict and one.keys() == other.keys():
        return {name: _compared(value, other[name]) for name, value in one.items()}
    if one == other:
        return one
    if type(one) is not int:
        raise UnfitError(f"{one} is {other} in larger batches")
    each = other - one
    return Grown(one - SIZES[0] * each, each)


def sized(step: Step, count: int) -> Step:
    if not any(isinstance(leaf, Grown) for leaf in _leaves((step.args, step.kwargs))):
        return step
    return replace(step, args=_filled(step.args, count), kwargs=_filled(step.kwargs, count))


def is_same(one: Step, other: Step) -> bool:
    """Whether two steps for batches of one size are alike."""
    try:
        found = grown(one, other)
    except UnfitError:
        return False
    return not any(isinstance(leaf, Grown) for leaf in _leaves((found.args, found.kwargs)))


def _leaves(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, list, dict):
        for one in value.values() if type(value) is dict else value:
            yield from _leaves(one)
    else:
        yield value


def _filled(value: Any, count: int) -> Any:
    if isinstance(value, Grown):
        return value.base + value.each * count
    if type(value) in (tuple, list):
        return type(value)([_filled(one, count) for one in value])
    return {name: _filled(one, count) for name, one in value.items()} if type(value) is dict else value
