"""PMAFL, primary mean attribution focus level (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import mean_focus, region_metric
from saliometer.types import PRIMARY, Samples


@region_metric(better="higher", formula="PAFL ⁄ number of pixels of the primary objects", needs=(PRIMARY,))
def pmafl(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """The share of the attribution per pixel of the objects that decide."""
    return mean_focus(maps, samples, PRIMARY, definition, region)
