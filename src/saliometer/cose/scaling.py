"""From an attribution to the map that COSE compares: values in [0, 1], a constant map 0 everywhere."""

import math

from torch import Tensor


def scaled(maps: Tensor) -> Tensor:
    """(N, H, W) of (N, C, H, W): absolute values summed, from the minimum to the 99th percentile, cut to [0, 1].

    Where hardly a pixel stands out, the maximum takes the percentile's place.
    """
    joined = maps.abs().sum(1)
    flat = joined.flatten(1)
    low, high, most = flat.amin(1), percentile(flat, 0.99), flat.amax(1)
    high = high.where(high > low, most)
    return _between(joined, low, high).clamp(0, 1)


def family_scaled(maps: Tensor, method: str) -> Tensor:
    """As the authors' code does it: by the kind of method, so CAMs by their positive part and LIME not at all."""
    if "cam" in method.split("_") and not method.startswith("guided"):
        positive = maps.sum(1).relu()
        flat = positive.flatten(1)
        return _between(positive, flat.amin(1), flat.amax(1))
    return maps.sum(1) if method == "lime" else scaled(maps)


def finished(maps: Tensor) -> Tensor:
    """(N, H, W): of a map that is a mask already."""
    return maps.amax(1)


def _between(maps: Tensor, low: Tensor, high: Tensor) -> Tensor:
    span = (high - low).where(high != low, 1.0)  # NaN stays NaN
    return (maps - low[:, None, None]) / span[:, None, None]


def percentile(flat: Tensor, share: float) -> Tensor:
    """(N,): with linear interpolation, as numpy has it."""
    place = share * (flat.shape[1] - 1)
    below = math.floor(place)
    top = flat.topk(flat.shape[1] - below, 1).values
    lower, upper = top[:, -1], top[:, max(top.shape[1] - 2, 0)]
    return lower + (upper - lower) * (place - below)
