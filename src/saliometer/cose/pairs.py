"""The fixed list of data pairs of each image: by its seed alone, so the same for every method, model and batch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.cose.inverse import undone, validity
from saliometer.cose.operations import BINS, GEOMETRIC, OPERATIONS, applied
from saliometer.registry import one_of
from saliometer.seeds import uniform

MAGNITUDES = 6  # drawn for each signed operation, of 60


@dataclass(frozen=True, eq=False)
class Pair:
    """One operation, with every image's own magnitude."""

    name: str
    bins: Tensor  # (N,) int64 on the CPU, -30 to 30 without 0; 0 for an operation without magnitudes
    draw: int = 0  # which of the operation's draws

    @property
    def geometric(self) -> bool:
        return OPERATIONS[self.name].kind == GEOMETRIC

    def images(self, pixels: Tensor) -> Tensor:
        """(N, C, H, W) uint8."""
        return applied(self.name, pixels, self._beside(pixels))

    def undone(self, maps: Tensor) -> Tensor:
        return undone(self.name, maps, self._beside(maps))

    def valid(self, like: Tensor, partly: bool = False) -> Tensor | None:
        return validity(self.name, self._beside(like), like, partly=partly)

    def _beside(self, values: Tensor) -> Tensor:
        """The bins where values are, without a wait for what the device is still busy with."""
        return self.bins.to(values.device, non_blocking=True)

    def labels(self, shape: Sequence[int]) -> list[str]:
        """What rows call the pair of each image (..., H, W)."""
        return [OPERATIONS[self.name].label(number, shape) for number in self.bins.tolist()]


def data_pairs(seeds: Tensor, operations: Iterable[str] = OPERATIONS, magnitudes: int = MAGNITUDES) -> list[Pair]:
    """42 pairs of signed operations and 6 of fixed ones, unless fewer are asked for.

    An operation draws from its own stream: a subset of operations or magnitudes is a subset of the pairs.
    """
    if not 1 <= magnitudes <= 2 * BINS:
        raise ValueError(f"cose: magnitudes={magnitudes}, wanted 1 to {2 * BINS}, drawn without replacement")
    seeds, found = seeds.cpu(), []
    for name in operations:
        if not OPERATIONS[one_of("operation", name, OPERATIONS)].most:
            found.append(Pair(name, torch.zeros(len(seeds), dtype=torch.int64)))
            continue
        drawn = uniform(seeds, f"cose {name}", 2 * BINS).argsort(dim=1, stable=True)[:, :magnitudes]
        bins = torch.where(drawn < BINS, drawn - BINS, drawn - BINS + 1)  # -30 to -1 and 1 to 30
        found += [Pair(name, column.contiguous(), draw) for draw, column in enumerate(bins.unbind(1))]
    return found
