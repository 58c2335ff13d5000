"""SMAFL, secondary mean attribution focus level (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import mean_focus, region_metric
from saliometer.types import SECONDARY, Samples


@region_metric(better="lower", formula="SAFL ⁄ number of pixels of the secondary objects", needs=(SECONDARY,))
def smafl(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """The share of the attribution per pixel of the objects that play no part."""
    return mean_focus(maps, samples, SECONDARY, definition, region)
