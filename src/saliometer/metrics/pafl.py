"""PAFL, primary attribution focus level (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import focus, region_metric
from saliometer.types import PRIMARY, Samples


@region_metric(
    better="higher",
    formula="Σ a over the primary objects ⁄ Σ a over the image; a is what the definition reads of E",
    needs=(PRIMARY,),
)
def pafl(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """The share of the attribution that lies on the objects that decide."""
    return focus(maps, samples, PRIMARY, definition, region)
