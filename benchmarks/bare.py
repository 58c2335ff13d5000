"""Bare passes of a network: the floor, and the measure that times are held against.

A busy machine slows bare passes and a method's alike, so a time alone says little. Every run is held against bare
passes of the same kinds that go just before and just after it and take about as long; what stands in tables is the
median of those ratios. With one thread on a CPU, seconds are those of the process and not of the clock on the wall, so
that others who use the cores do not count.
"""

import copy
import itertools
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saliometer.engine.device import exact

LARGE = 1 << 16  # values of an image from which on a CPU is fastest with few at once, and memory short for many
LONGEST = 0.2  # seconds that bare passes of one kind go on beside a run


def synchronized(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Of one run."""
    alone = device.type == "cpu" and torch.get_num_threads() == 1
    clock = time.process_time if alone else time.perf_counter
    synchronized(device)
    start = clock()
    work()
    synchronized(device)
    return clock() - start


def forth(net: nn.Module, rows: Tensor) -> None:
    with torch.no_grad():
        net(rows)


def forth_and_back(net: nn.Module, rows: Tensor) -> None:
    with torch.enable_grad():
        torch.autograd.grad(net(rows)[:, 0].sum(), rows)


def slope_of_slope(net: nn.Module, rows: Tensor) -> None:
    with torch.enable_grad():
        (slopes,) = torch.autograd.grad(net(rows)[:, 0].sum(), rows, create_graph=True)
        torch.autograd.grad(slopes.square().sum(), rows)


Kind = Callable[[nn.Module, Tensor], None]


@dataclass
class Pass:
    """A pass of one kind over a batch of copies of what goes in for one image."""

    kind: Kind
    net: nn.Module
    rows: Tensor
    how: str  # in words
    tuned: bool = False  # by cuDNN
    best: float = math.inf  # seconds an image, the shortest batch so far

    def __call__(self, least: float = 0.0) -> float:
        """Seconds an image, now: of as many batches as take `least` seconds."""
        spent, batches = 0.0, 0
        with exact():
            torch.backends.cudnn.benchmark = self.tuned
            while not batches or spent < least:
                took = seconds(lambda: self.kind(self.net, self.rows), self.rows.device)
                spent, batches = spent + took, batches + 1
                self.best = min(self.best, took / len(self.rows))
        return spent / batches / len(self.rows)


def fastest(net: nn.Module, one: Tensor, kind: Kind, sizes: tuple[int, ...] = (), rounds: int = 4) -> Pass:
    """At the best batch size and memory format; all are tried in turn, for a slow moment must not decide."""
    cpu = one.device.type == "cpu"
    usual = (32, 64, 128, 256) if not cpu else (16, 32, 64, 128) if one.numel() < LARGE else (4, 8, 16)
    sizes, tuned = sizes or usual, (False,) if cpu else (False, True)
    tried = []
    for layout in (torch.channels_last, torch.contiguous_format):
        laid = copy.deepcopy(net).to(memory_format=layout)  # type: ignore[call-overload]
        for size, tune in itertools.product(sizes, tuned):
            rows = one.detach().expand(size, *one.shape[1:]).contiguous(memory_format=layout)
            how = f"{str(layout).removeprefix('torch.')}, {size}{', tuned' if tune else ''}"
            tried.append(Pass(kind, laid, rows.requires_grad_(kind is not forth), how, tune))
    for each in tried:
        each()
        each.best = math.inf  # the first time is slower
    for _, each in itertools.product(range(rounds), tried):
        each()
    return min(tried, key=lambda each: each.best)


@dataclass
class Floor:
    """Bare passes of several kinds: a weighted sum of their seconds is the least that some work takes."""

    parts: list[tuple[float, Pass]]

    def now(self, least: float = 0.0) -> float:
        """Seconds an image."""
        return sum(weight * each(min(least, LONGEST)) for weight, each in self.parts)

    def best(self) -> float:
        """Seconds an image, on a machine that does nothing else."""
        return sum(weight * each.best for weight, each in self.parts)

    def held(self, work: Callable[[], object], images: int, repeats: int = 7, enough: float = 2.0) -> float:
        """How many times as long as the floor a run takes: the median of some, each by the bare passes around it.

        The first only warms up, unless it took `enough` seconds, after which no more runs follow.
        """
        device = self.parts[0][1].rows.device
        before, found, spent = self.now(LONGEST / 10), list[float](), 0.0
        while len(found) <= repeats and spent < enough:
            took = seconds(work, device)
            after = self.now(took)
            found.append(2 * took / images / (before + after))
            before, spent = after, spent + took
        return statistics.median(found[1:] or found)


def floor(*parts: tuple[float, Pass]) -> Floor:
    return Floor([(weight, each) for weight, each in parts if weight])
