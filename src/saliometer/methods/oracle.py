"""Oracle: the scored region itself, the ceiling of a metric."""

from torch import Tensor

from saliometer.registry import method
from saliometer.seeds import uniform
from saliometer.types import Batch, Model


@method(control=True, needs_truth=True, rendering="raw")
def oracle(model: Model, batch: Batch, *, truth: Tensor, noise: float = 0.0) -> Tensor:
    """The primary region filled with 1: says what the best possible map scores. Handed over by the task.

    Everywhere comes `noise` times a number from [0, 1), for checks that no map without any noise can take.
    """
    if not 0 <= noise < float("inf"):
        raise ValueError(f"oracle: noise={noise}, wanted 0 or more")
    found = truth[:, None].to(batch.images.dtype)
    return found + noise * uniform(batch.seeds, "oracle", *found.shape[1:]).to(found) if noise else found
