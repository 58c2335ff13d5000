"""Other images of the data, for methods that compare with them."""

from torch import Tensor

from saliometer.graph import UnfitError
from saliometer.types import Batch


def some_references(name: str, batch: Batch, count: int | None = None, fewest: int = 1) -> Tensor:
    """The first `count` references or all, or an error in the name of the method that asks."""
    if count is not None and count < 1:
        raise ValueError(f"{name}: count={count}, wanted 1 or more")
    references = batch.references
    if references is None or not len(references):
        raise ValueError(
            f"{name} compares with other images of the data and was given none: pass references, an (R, C, H, W) tensor"
        )
    if references.ndim != 4 or references.shape[1:] != batch.images.shape[1:]:
        came, wanted = tuple(references.shape), ", ".join(map(str, batch.images.shape[1:]))
        raise ValueError(f"{name}: references have shape {came}, wanted (R, {wanted}) like the images")
    if len(references) < fewest:
        raise UnfitError(f"{name}: {len(references)} references were given, wanted {fewest} or more")
    return references[:count]
