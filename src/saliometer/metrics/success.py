"""Success: whether more than half of the attribution lies on the objects that decide (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import focus, region_metric
from saliometer.types import PRIMARY, Samples


@region_metric(better="higher", formula="1 if PAFL > 0.5, else 0", needs=(PRIMARY,))
def success(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """1 where PAFL is above 0.5: most of the attribution lies on the objects that decide."""
    return (focus(maps, samples, PRIMARY, definition, region) > 0.5).double()
