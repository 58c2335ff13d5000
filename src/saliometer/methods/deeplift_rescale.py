"""DeepLIFT with the Rescale rule: how the score's difference to a baseline comes about (Shrikumar et al., 2017)."""

from torch import Tensor

from saliometer.graph import Network, walk
from saliometer.methods._deeplift import RESCALE, compared, difference
from saliometer.methods._rules import on_target
from saliometer.perturb import filled
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model, Walk


@method(rules=RESCALE, passes=2, unit="contribution", multiplier="baseline")
def deeplift_rescale(model: Model, batch: Batch, *, baseline: str = "zero") -> Asking:
    """The score's difference to that of a baseline, handed back in proportion to every unit's own difference."""
    start = filled(model, batch.images, baseline, references=batch.references, seeds=batch.seeds)
    risen: list[Tensor] = []

    def run(network: Network, rows: slice) -> Tensor:
        forward = network.run(batch.images[rows], fold=True)
        reference = compared(network, forward, start[rows], baseline)
        chosen = on_target(forward.logits, batch.targets[rows])
        multipliers: Tensor = walk(forward, chosen, RESCALE, reference)
        risen.append((chosen * (forward.logits - reference.logits)).double().sum(1))
        return multipliers * (batch.images[rows] - start[rows])

    maps = yield Walk(batch.images, run)
    return difference(maps, risen, batch.images - start)
