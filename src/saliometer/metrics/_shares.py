"""Maps as metrics of complexity read them: from 0 to 1, and a constant map stays constant."""

from torch import Tensor

from saliometer.maps import minmax


def positive(maps: Tensor) -> Tensor:
    """(N, H, W) in [0, 1]: 1 where a map is the same non-zero value everywhere, 0 where it is 0."""
    flat = maps.flatten(1)
    constant = (flat.amin(1) == flat.amax(1))[:, None, None]
    return minmax(maps).where(~constant, (maps != 0).to(maps.dtype))
