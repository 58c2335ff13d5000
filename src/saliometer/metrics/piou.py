"""PIOU, primary intersection over union (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import overlap, region_metric
from saliometer.types import PRIMARY, Samples


@region_metric(
    better="higher",
    formula="|T ∩ P| ⁄ |T ∪ P|; P the pixels of the primary objects, T the |P| highest pixels",
    needs=(PRIMARY,),
)
def piou(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """Overlap of the highest pixels with the objects that decide."""
    return overlap(maps, samples, PRIMARY, definition, region)
