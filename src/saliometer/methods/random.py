"""Random: uniform noise, the floor of every table."""

from torch import Tensor

from saliometer.registry import method
from saliometer.seeds import uniform
from saliometer.types import Batch, Model


@method(random=True, control=True, rendering="raw_heat")
def random(model: Model, batch: Batch, *, channels: int = 1) -> Tensor:
    """Uniform noise in [0, 1), fresh for every image; says what a map scores by chance."""
    if channels < 1:
        raise ValueError(f"random: channels={channels}, wanted 1 or more")
    return uniform(batch.seeds, "random", channels, *batch.images.shape[2:]).to(batch.images.dtype)
