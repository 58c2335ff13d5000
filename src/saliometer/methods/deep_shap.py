"""DeepSHAP: DeepLIFT averaged over many reference images (Lundberg & Lee, 2017)."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from saliometer.graph import Chosen, Network, walk
from saliometer.methods._deeplift import RESCALE, difference
from saliometer.methods._references import some_references
from saliometer.methods._rules import on_target
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model, Walk


@method(
    rules=RESCALE,
    needs_references=True,
    rendering="shap",
    quick={"count": 3},
    passes=100,
    budget="count",
    unit="contribution",
)
def deep_shap(model: Model, batch: Batch, *, count: int = 100) -> Asking:
    """DeepLIFT's Rescale rule averaged over reference images; sums to the score minus the references' mean score."""
    references = some_references("deep_shap", batch, count)
    risen: list[Tensor] = []
    spread: list[Tensor] = []

    def run(network: Network, rows: slice) -> Tensor:
        images, targets = batch.images[rows], batch.targets[rows]
        groups = -(-len(references) // max(1, network.room // len(images)))
        copies = -(-len(references) // groups)  # as many references at a time as fit
        forward = network.run(images, fold=True, slopes=False)
        repeated = network.repeated(forward, copies)
        start = on_target(forward.logits, targets)
        total, rises = torch.zeros_like(images), []
        for reference, real in _compared(network, references, copies, len(images)):
            multipliers = walk(repeated, start.repeat(copies, 1), RESCALE, reference)
            way, rise = (torch.sub(*reference.beside(number, repeated)) for number in (0, forward.graph.output))
            network.tick(real * len(images))
            total += (multipliers.view_as(way) * way)[:real].sum(0)
            rises.append((start * rise)[:real].double().sum(2))  # (real, N)
        every = torch.cat(rises)
        risen.append(every.mean(0))
        spread.append(every.std(0, correction=0))
        return total / len(references)

    maps = yield Walk(batch.images, run, len(references) + 1)
    return replace(difference(maps, risen, torch.ones_like(maps)), facts={"spread": torch.cat(spread)})


def _compared(network: Network, references: Tensor, copies: int, images: int) -> Iterator[tuple[Chosen, int]]:
    """Each reference's pass, made once and read for all images, `copies` at a time; and how many of them are real."""
    fitting = max(1, network.room // copies) * copies
    for held in references.split(fitting):
        forward = network.run(held, fold=True, slopes=False)
        for start in range(0, len(held), copies):
            real = min(copies, len(held) - start)
            places = torch.arange(start, start + copies, device=held.device).clamp(max=len(held) - 1)
            yield Chosen(forward, places, images), real
