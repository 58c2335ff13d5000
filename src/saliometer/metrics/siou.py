"""SIOU, secondary intersection over union; as many pixels are picked as the primary objects have (Kim et al., 2022)."""

from torch import Tensor

from saliometer.metrics._regions import overlap, region_metric
from saliometer.types import PRIMARY, SECONDARY, Samples


@region_metric(
    better="lower",
    formula="|T ∩ S| ⁄ |T ∪ S|; S the pixels of the secondary objects, T as many highest ones as the primary have",
    needs=(SECONDARY, PRIMARY),
)
def siou(maps: Tensor, samples: Samples, *, definition: str = "clean", region: str = "box") -> Tensor:
    """Overlap of the highest pixels with the objects that play no part."""
    return overlap(maps, samples, SECONDARY, definition, region)
