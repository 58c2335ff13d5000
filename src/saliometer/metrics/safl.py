"""SAFL, secondary attribution focus level (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import focus, region_metric
from saliometer.types import SECONDARY, Samples


@region_metric(
    better="lower",
    formula="Σ a over the secondary objects ⁄ Σ a over the image; a is what the definition reads of E",
    needs=(SECONDARY,),
)
def safl(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """The share of the attribution that lies on objects that play no part."""
    return focus(maps, samples, SECONDARY, definition, region)
