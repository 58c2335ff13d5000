"""The kernels themselves, in Triton; each stands for the lines of PyTorch beside which it is called."""

import torch
import triton
from torch import Tensor
from triton import language as tl

FEW = 128  # numbers that take so long that they are better spread out
TILE = 1024  # numbers that are looked at together: of one channel's places, or of several channels that have few


def divided(
    value: Tensor, slope: Tensor, total: Tensor, bias: Tensor, share: float, epsilon: float, smallest: float
) -> tuple[Tensor, Tensor]:
    """share * value * slope / (total + bias + epsilon), and (3, N, C) sums over places: of it, lost, and held back."""
    value, slope, total = value.contiguous(), slope.contiguous(), total.contiguous()
    bias = bias.flatten() if bias.ndim else total.new_zeros(total.shape[1])
    quotient, sums = torch.empty_like(total), total.new_empty(3, *total.shape[:2])
    grid, rows, places, tile = _tiles(total)
    _divided[grid](
        value, slope, total, bias, quotient, sums, rows, places, len(bias), share, epsilon, smallest, **tile
    )  # fmt: skip
    return quotient, sums


def largest_share(part: Tensor, total: Tensor, slope: Tensor) -> Tensor:
    """(N, C): the largest of |p / t| and |1 - p / t| wherever neither the slope nor the total is 0."""
    most = total.new_empty(total.shape[:2])
    grid, rows, places, tile = _tiles(total)
    _largest_share[grid](part.contiguous(), total.contiguous(), slope.contiguous(), most, rows, places, **tile)
    return most


def rectified(value: Tensor, reference: Tensor, multipliers: Tensor) -> Tensor:
    """Multipliers times (v+ + r+) / (|v| + |r|); of values and references, fewer rows may stand for several."""
    value, reference, multipliers = value.contiguous(), reference.contiguous(), multipliers.contiguous()
    found, rows, size, each = torch.empty_like(multipliers), *_rows(multipliers, reference)
    images = value.numel() // size
    _rectified[triton.cdiv(size, TILE), rows](value, reference, multipliers, found, size, images, each, tile=TILE)
    return found


def uniform(keys: Tensor, count: int) -> Tensor:
    """(N, count) float32 in [0, 1): the streams of (N,) keys."""
    found = torch.empty(len(keys), count, device=keys.device)
    _uniform[triton.cdiv(count, TILE), len(keys)](keys.contiguous(), found, count, tile=TILE)
    return found


def revealed(given: Tensor, value: Tensor, start: Tensor) -> Tensor:
    """(2, N, ...): both parts of a difference behind a ReLU, each one's effect averaged over both orders."""
    given, value, start = given.contiguous(), value.contiguous(), start.contiguous()
    found, rows, size, each = torch.empty_like(given), *_rows(given[0], start)
    _revealed[triton.cdiv(size, TILE), rows](given, value, start, found, size, rows * size, each, tile=TILE)
    return found


def halved(apart: Tensor, value: Tensor, start: Tensor) -> Tensor:
    """(2, N, ...): the two parts of a difference that lie so far apart."""
    apart, value, start = apart.contiguous(), value.contiguous(), start.contiguous()
    found, rows, size, each = apart.new_empty((2, *apart.shape)), *_rows(apart, start)
    _halved[triton.cdiv(size, TILE), rows](apart, value, start, found, size, rows * size, each, tile=TILE)
    return found


def crossed(straight: Tensor, across: Tensor, value: Tensor, start: Tensor) -> Tensor:
    """What is sent straight, and half of what is sent across with the sign of a difference."""
    straight, across, value, start = (one.contiguous() for one in (straight, across, value, start))
    found, rows, size, each = torch.empty_like(straight), *_rows(straight, start)
    _crossed[triton.cdiv(size, TILE), rows](straight, across, value, start, found, size, each, tile=TILE)
    return found


def opened(multipliers: Tensor, given: Tensor, value: Tensor, start: Tensor) -> Tensor:
    """(2, N, ...): multipliers of both parts times the share of their way on which a ReLU is open."""
    multipliers = multipliers if multipliers[0].is_contiguous() else multipliers.contiguous()
    given, value, start = given.contiguous(), value.contiguous(), start.contiguous()
    found, rows, size, each = torch.empty_like(given), *_rows(given[0], start)
    apart = multipliers.stride(0)  # 0 where both parts have the same
    _opened[triton.cdiv(size, TILE), rows](
        multipliers, given, value, start, found, size, rows * size, apart, each, tile=TILE
    )
    return found


def guided(signal: Tensor, before: Tensor) -> Tensor:
    """What is positive of a signal, where `before` is."""
    signal, before = signal.contiguous(), before.contiguous()
    found = torch.empty_like(signal)
    _guided[(triton.cdiv(signal.numel(), TILE),)](signal, before, found, signal.numel(), tile=TILE)
    return found


def finished(made: Tensor, scale: Tensor, shift: Tensor, added: Tensor | None, low: float, high: float) -> Tensor:
    """Channels scaled and shifted, added to, and clamped, in their own memory: plain or channels last."""
    last = made.is_contiguous(memory_format=torch.channels_last)
    channels, places = made.shape[1], 1 if last else made.shape[2] * made.shape[3]
    _finished[(triton.cdiv(made.numel(), TILE),)](
        made, scale, shift, made if added is None else added, made.numel(), channels, places, low, high,
        adds=added is not None, tile=TILE,
    )  # fmt: skip
    return made


def painted(
    grids: Tensor, taps: Tensor, kernel: Tensor, handicap: Tensor, reach: int, coldness: float, beyond: float
) -> tuple[Tensor, Tensor]:
    """(M, places, cells) twice: the smooth maximum that pixels take of the nodes around, and its denominator."""
    grids = grids.contiguous()
    masks, down, across = grids.shape
    shape = masks, len(kernel), down * across
    found, sums = grids.new_empty(shape), grids.new_empty(shape)
    grid = triton.cdiv(down * across, TILE), len(kernel), masks
    _painted[grid](
        grids, taps, kernel, handicap, found, sums, down, across, len(taps), len(kernel), reach, coldness, beyond,
        tile=TILE,
    )  # fmt: skip
    return found, sums


def pulled(
    grids: Tensor, taps: Tensor, kernel: Tensor, handicap: Tensor, reach: int, coldness: float, beyond: float,
    masks: Tensor, pull: Tensor,
) -> Tensor:  # fmt: skip
    """(M, nodes, nodes): how pulls at pixels, (M, places, cells), add up at the nodes."""
    grids, masks, pull = grids.contiguous(), masks.contiguous(), pull.contiguous()
    sums = painted(grids, taps, kernel, handicap, reach, coldness, beyond)[1]
    found, (count, down, across) = torch.empty_like(grids), grids.shape
    _pulled[triton.cdiv(down * across, FEW), count](
        grids, taps, kernel, handicap, masks, sums, pull, found, down, across, len(taps), len(kernel), reach, coldness,
        tile=FEW,
    )  # fmt: skip
    return found


def _rows(values: Tensor, reference: Tensor) -> tuple[int, int, int]:
    """How many rows there are, the numbers in each, and the rows that a row of the references stands for."""
    rows, size = len(values), values[0].numel()
    return rows, size, rows // (reference.numel() // size)


def _tiles(values: Tensor) -> tuple[tuple[int], int, int, dict[str, int]]:
    """How many tiles there are, rows (one for each channel of each image), places in a row, and a tile's sides."""
    rows, places = values.shape[0] * values.shape[1], values.shape[2] * values.shape[3]
    width = 64 if places <= 64 else 256
    return (triton.cdiv(rows, TILE // width),), rows, places, {"height": TILE // width, "width": width}


@triton.jit
def _divided(
    value, slope, total, bias, quotient, sums, rows, places, channels,
    share, epsilon, smallest, height: tl.constexpr, width: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    there = row < rows
    offset = tl.load(bias + row % channels, mask=there, other=0.0)[:, None]
    handed = tl.zeros([height], tl.float32)
    lost = tl.zeros([height], tl.float32)
    held = tl.zeros([height], tl.float32)
    for start in range(0, places, width):
        place = start + tl.arange(0, width)
        inside = there[:, None] & (place < places)[None, :]
        at = row[:, None] * places + place[None, :]
        relevance = tl.load(value + at, mask=inside, other=0.0) * tl.load(slope + at, mask=inside, other=0.0) * share
        whole = tl.load(total + at, mask=inside, other=0.0) + offset
        stabiliser = tl.where(whole < 0, -epsilon, epsilon)
        whole += stabiliser
        zero = tl.abs(whole) <= smallest
        found = tl.where(zero, 0.0, relevance / tl.where(zero, 1.0, whole))
        tl.store(quotient + at, found, mask=inside)
        handed += tl.sum(found, 1)
        lost += tl.sum(tl.where(zero, relevance, 0.0), 1)
        held += tl.sum(found * stabiliser, 1)
    tl.store(sums + row, handed, mask=there)
    tl.store(sums + rows + row, lost, mask=there)
    tl.store(sums + 2 * rows + row, held, mask=there)


@triton.jit
def _largest_share(part, total, slope, most, rows, places, height: tl.constexpr, width: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * height + tl.arange(0, height)
    there = row < rows
    largest = tl.zeros([height], tl.float32)
    for start in range(0, places, width):
        place = start + tl.arange(0, width)
        inside = there[:, None] & (place < places)[None, :]
        at = row[:, None] * places + place[None, :]
        whole = tl.load(total + at, mask=inside, other=0.0)
        counts = (tl.load(slope + at, mask=inside, other=0.0) != 0) & (whole != 0)
        share = tl.load(part + at, mask=inside, other=0.0) / tl.where(counts, whole, 1.0)
        larger = tl.maximum(tl.abs(share), tl.abs(1 - share))
        largest = tl.maximum(largest, tl.max(tl.where(counts, larger, 0.0), 1))
    tl.store(most + row, largest, mask=there)


@triton.jit
def _rectified(value, reference, multipliers, found, size, images, each, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    inside = place < size
    v = tl.load(value + (row % images) * size + place, mask=inside, other=0.0)
    r = tl.load(reference + (row // each) * size + place, mask=inside, other=0.0)
    length = tl.abs(v) + (tl.abs(r) + 1.17549435e-38)  # that is `tiny`
    share = (tl.maximum(v, 0.0) + tl.maximum(r, 0.0)) / length
    sent = tl.load(multipliers + row * size + place, mask=inside, other=0.0)
    tl.store(found + row * size + place, sent * share, mask=inside)


@triton.jit
def _revealed(given, value, start, found, size, second, each, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    inside = place < size
    at = row * size + place
    origin = tl.load(start + (row // each) * size + place, mask=inside, other=0.0)
    whole = tl.maximum(tl.load(value + at, mask=inside, other=0.0), 0.0) - tl.maximum(origin, 0.0)
    high = tl.maximum(tl.load(given + at, mask=inside, other=0.0) + origin, 0.0)
    low = tl.maximum(tl.load(given + second + at, mask=inside, other=0.0) + origin, 0.0)
    tl.store(found + at, (whole + (high - low)) / 2, mask=inside)
    tl.store(found + second + at, (whole - (high - low)) / 2, mask=inside)


@triton.jit
def _halved(apart, value, start, found, size, second, each, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    inside = place < size
    at = row * size + place
    origin = tl.load(start + (row // each) * size + place, mask=inside, other=0.0)
    whole = tl.load(value + at, mask=inside, other=0.0) - origin
    width = tl.load(apart + at, mask=inside, other=0.0)
    tl.store(found + at, (whole + width) / 2, mask=inside)
    tl.store(found + second + at, (whole - width) / 2, mask=inside)


@triton.jit
def _crossed(straight, across, value, start, found, size, each, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    inside = place < size
    at = row * size + place
    origin = tl.load(start + (row // each) * size + place, mask=inside, other=0.0)
    end = tl.load(value + at, mask=inside, other=0.0)
    sign = tl.where(end > origin, 0.5, tl.where(end < origin, -0.5, 0.0))
    sent = tl.load(straight + at, mask=inside, other=0.0)
    tl.store(found + at, sent + sign * tl.load(across + at, mask=inside, other=0.0), mask=inside)


@triton.jit
def _opened(multipliers, given, value, start, found, size, second, apart, each, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    inside = place < size
    at = row * size + place
    origin = tl.load(start + (row // each) * size + place, mask=inside, other=0.0)
    end = tl.load(value + at, mask=inside, other=0.0)
    rise = tl.load(given + at, mask=inside, other=0.0)
    risen = tl.maximum(tl.abs(rise), 1.17549435e-38)
    fallen = tl.maximum(tl.abs(tl.load(given + second + at, mask=inside, other=0.0)), 1.17549435e-38)
    top = origin + rise
    up = tl.clamp(top / risen, 0.0, 1.0) + tl.clamp(end / risen, 0.0, 1.0)
    down = tl.clamp(top / fallen, 0.0, 1.0) + tl.clamp(origin / fallen, 0.0, 1.0)
    tl.store(found + at, tl.load(multipliers + at, mask=inside, other=0.0) * up / 2, mask=inside)
    tl.store(found + second + at, tl.load(multipliers + apart + at, mask=inside, other=0.0) * down / 2, mask=inside)


@triton.jit
def _uniform(keys, found, count, tile: tl.constexpr):
    place = tl.program_id(0) * tile + tl.arange(0, tile)
    row = tl.program_id(1).to(tl.int64)
    key = tl.load(keys + row)
    bits = _mixed(place.to(tl.uint32) + key.to(tl.uint32))
    bits = _mixed(bits + (key >> 32).to(tl.uint32))
    tl.store(found + row * count + place, (bits >> 8).to(tl.float32) * 5.9604644775390625e-08, mask=place < count)


@triton.jit
def _mixed(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _guided(signal, before, found, count, tile: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile)
    inside = place < count
    sent = tl.maximum(tl.load(signal + place, mask=inside, other=0.0), 0.0)
    tl.store(found + place, tl.where(tl.load(before + place, mask=inside, other=0.0) > 0, sent, 0.0), mask=inside)


@triton.jit(do_not_specialize=["scale", "shift", "count", "channels", "places"])  # else there are dozens of it
def _finished(made, scale, shift, added, count, channels, places, low, high, adds: tl.constexpr, tile: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * tile
    place = first + tl.arange(0, tile)
    inside = place < count
    channel = (((first % (channels * places)).to(tl.int32) + tl.arange(0, tile)) // places) % channels
    value = tl.load(made + place, mask=inside, other=0.0)
    value = value * tl.load(scale + channel, mask=inside, other=0.0) + tl.load(shift + channel, mask=inside, other=0.0)
    if adds:
        value += tl.load(added + place, mask=inside, other=0.0)
    value = tl.where(value < low, low, value)  # NaN stays
    tl.store(made + place, tl.where(value > high, high, value), mask=inside)


@triton.jit
def _painted(
    grids, taps, kernel, handicap, found, sums, down, across, count, places, reach, coldness, beyond, tile: tl.constexpr
):
    cell = tl.program_id(0) * tile + tl.arange(0, tile)
    place = tl.program_id(1)
    mask = tl.program_id(2).to(tl.int64)
    cells = down * across
    total = tl.zeros([tile], tl.float32)
    weighted = tl.zeros([tile], tl.float32)
    for number in range(count):
        tap = tl.load(taps + number)
        row = cell // across + tap // (2 * reach + 1) - reach
        column = cell % across + tap % (2 * reach + 1) - reach
        there = (row >= 0) & (row < down) & (column >= 0) & (column < across)
        node = tl.load(grids + mask * cells + row * across + column, mask=there, other=beyond)
        height = tl.load(handicap + place * count + number)
        height += coldness * node * tl.load(kernel + place * count + number)
        say = tl.exp(height)
        total += say
        weighted += height * say
    at = (mask * places + place) * cells + cell
    tl.store(found + at, weighted / total / coldness, mask=cell < cells)
    tl.store(sums + at, total, mask=cell < cells)


@triton.jit
def _pulled(
    grids, taps, kernel, handicap, masks, sums, pull, found, down, across, count, places, reach, coldness,
    tile: tl.constexpr,
):  # fmt: skip
    node = tl.program_id(0) * tile + tl.arange(0, tile)
    mask = tl.program_id(1).to(tl.int64)
    cells = down * across
    own = tl.load(grids + mask * cells + node, mask=node < cells, other=0.0)
    total = tl.zeros([tile], tl.float32)
    for number in range(count):
        tap = tl.load(taps + number)
        row = node // across - (tap // (2 * reach + 1) - reach)  # of the cell that has this node there
        column = node % across - (tap % (2 * reach + 1) - reach)
        there = (node < cells) & (row >= 0) & (row < down) & (column >= 0) & (column < across)
        for place in range(places):
            at = (mask * places + place) * cells + row * across + column
            force = tl.load(pull + at, mask=there, other=0.0)
            shown = tl.load(masks + at, mask=there, other=0.0)
            weight = tl.load(kernel + place * count + number)
            height = tl.load(handicap + place * count + number) + coldness * own * weight
            say = tl.exp(height) / tl.load(sums + at, mask=there, other=1.0)
            total += force * (1 - coldness * shown + height) * say * weight
    tl.store(found + mask * cells + node, total, mask=node < cells)
