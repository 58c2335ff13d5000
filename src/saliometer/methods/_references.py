"""Other images of the data, for methods that compare with them."""

from torch import Tensor

from saliometer.types import Batch


def some_references(name: str, batch: Batch, count: int, fewest: int = 1) -> Tensor:
    """The first `count` references, or an error in the name of the method that asks."""
    if count < 1:
        raise ValueError(f"{name}: count={count}, wanted 1 or more")
    if batch.references is None:
        raise ValueError(
            f"{name} compares with other images of the data and was given none: pass references, an (R, C, H, W) tensor"
        )
    if batch.references.shape[1:] != batch.images.shape[1:] or batch.references.ndim != 4:
        came, wanted = tuple(batch.references.shape), tuple(batch.images.shape[1:])
        raise ValueError(
            f"{name}: references have shape {came}, wanted (R, {', '.join(map(str, wanted))}) like the images"
        )
    if len(batch.references) < fewest:
        raise ValueError(f"{name}: {len(batch.references)} references were given, wanted {fewest} or more")
    return batch.references[:count]
