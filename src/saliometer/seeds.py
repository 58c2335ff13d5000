"""Every random number: counter-based streams for each purpose and sample, no global generator.

A stream is a pure function of (seed, purpose, position) in wrapping integer arithmetic, so a sample gets the same
numbers on every device, alone or in a batch, and drawing for a whole batch is a handful of vectorised operations.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b

import torch
from torch import Tensor

from saliometer import fused

ROOM = 1 << 20  # numbers that are drawn together on a CPU
MOST = 65535  # streams that a kernel of ours draws from at once


def fork(*parts: object) -> int:
    """A 63-bit seed made of any parts that print the same everywhere (numbers, strings, tuples of them)."""
    digest = blake2b("\x1f".join(map(repr, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def forks(seed: int | Tensor, indices: Tensor) -> Tensor:
    """(N,) int64: one seed for each index of the stream `seed`; seeds of shape (M, 1) give (M, N)."""
    return _mix64(indices.to(torch.int64) * _signed(0x9E3779B97F4A7C15) + seed)


def uniform(seeds: Tensor, purpose: str, *shape: int) -> Tensor:
    """(N, *shape) float32 in [0, 1), a stream for each seed and purpose."""
    return _streams(_mix64(seeds ^ fork(purpose)), *shape)


def uniforms(seeds: Tensor, purposes: Sequence[str], *shape: int) -> Tensor:
    """(purposes, N, *shape): what `uniform` gives for each purpose, in fewer operations."""
    each = torch.tensor([fork(purpose) for purpose in purposes], dtype=torch.int64).to(seeds.device, non_blocking=True)
    return _streams(_mix64(seeds ^ each[:, None]).flatten(), *shape).view(len(purposes), len(seeds), *shape)


def _streams(keys: Tensor, *shape: int) -> Tensor:
    count = math.prod(shape)

    def some(keys: Tensor) -> Tensor:
        if 0 < len(keys) <= MOST and (kernels := fused.kernels(keys)):
            return kernels.uniform(keys, count).view(len(keys), *shape)  # type: ignore[no-any-return]
        bits = _bits(keys, count).bitwise_right_shift_(8).bitwise_and_(0xFFFFFF)
        return bits.to(torch.float32).mul_(2.0**-24).view(len(keys), *shape)

    return _in_parts(some, keys, count)


def normal(seeds: Tensor, purpose: str, like: Tensor) -> Tensor:
    """Standard normal numbers in the shape, type and place of `like` (Box-Muller, both branches used)."""
    count = like[0].numel()
    half = (count + 1) // 2

    def some(seeds: Tensor) -> Tensor:
        first, second = uniform(seeds, purpose, 2, half).unbind(1)
        radius = first.neg_().add_(1.0).log_().mul_(-2.0).sqrt_()  # 1 - u is in (0, 1], so the logarithm is finite
        angle = second.mul_(2 * math.pi)
        return torch.cat((angle.cos().mul_(radius), angle.sin_().mul_(radius)), 1)

    values = _in_parts(some, seeds.to(like.device), 2 * half)
    return values[:, :count].view_as(like).to(like.dtype)


@contextmanager
def scoped(*parts: object) -> Iterator[None]:
    """For code that knows only the global generator, such as weight initialisation; the caller's state comes back."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(fork(*parts))
        yield


def _in_parts(some: Callable[[Tensor], Tensor], seeds: Tensor, count: int) -> Tensor:
    """`some` of all seeds; on a CPU of a few at a time, for memory in use is several times as fast as new."""
    together = max(1, ROOM // max(count, 1))
    if seeds.device.type != "cpu" or len(seeds) <= together:
        return some(seeds)
    return torch.cat([some(part) for part in seeds.split(together)])


def _bits(keys: Tensor, count: int) -> Tensor:
    """(N, count) int32: 32 well-mixed bits for every position of every key's stream."""
    keys = keys[:, None]
    position = torch.arange(count, dtype=torch.int32, device=keys.device)
    bits = position + keys.to(torch.int32)  # the key's low half; int64 to int32 wraps
    return _mix32_(_mix32_(bits).add_((keys >> 32).to(torch.int32)))


def _mix32_(x: Tensor) -> Tensor:
    """In place: the 'lowbias32' bijection (Wellons, 2018); shifts are made logical by masking the sign bits."""
    shifted = torch.empty_like(x)  # used again: new memory takes longer than the arithmetic
    for by, factor in ((16, 0x7FEB352D), (15, 0x846CA68B - (1 << 32)), (16, 1)):
        torch.bitwise_right_shift(x, by, out=shifted)
        x.bitwise_xor_(shifted.bitwise_and_((1 << (32 - by)) - 1))
        if factor != 1:
            x.mul_(factor)
    return x


def _mix64(z: Tensor) -> Tensor:
    """The finaliser of SplitMix64 (Steele et al., 2014)."""
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift(z, 31)


def _shift(z: Tensor, by: int) -> Tensor:
    return (z >> by) & ((1 << (64 - by)) - 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
