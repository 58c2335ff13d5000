"""Failure: whether objects that play no part get more attribution than those that decide (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import focus, region_metric
from saliometer.types import PRIMARY, SECONDARY, Samples


@region_metric(better="lower", formula="1 if SAFL > PAFL, else 0", needs=(PRIMARY, SECONDARY))
def failure(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """1 where SAFL is above PAFL: objects that play no part get more than those that decide."""
    primary, secondary = (focus(maps, samples, role, definition, region) for role in (PRIMARY, SECONDARY))
    return (secondary > primary).double()
