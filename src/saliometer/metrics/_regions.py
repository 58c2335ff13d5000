"""What the SMERF metrics share: attribution focus level (AFL), its mean per pixel (MAFL), and IOU, of one role.

`clean` and `clean_positive` read the union of a role's objects and the exact highest pixels; `authors` does what the
authors' code does, bugs included: boxes are summed one by one, and the IOU threshold is the edge of a histogram bin.
"""

from functools import partial

import torch
from torch import Tensor

from saliometer.maps import DEFINITIONS, top
from saliometer.registry import metric
from saliometer.types import PRIMARY, Samples

region_metric = partial(
    metric, bounds=(0, 1), needs_truth=True, dead=0.0, definitions=DEFINITIONS, regions=("box", "ink")
)


def focus(maps: Tensor, samples: Samples, role: int, definition: str, region: str) -> Tensor:
    """(N,): the share of the whole attribution that lies on the objects of one role."""
    if definition == "authors":
        maps = maps - maps.amin((1, 2), keepdim=True)
        inside = (maps[:, None] * samples.parts(role, region)).sum((1, 2, 3))  # an overlap counts twice
    else:
        inside = (maps * samples.region(role, region)).sum((1, 2))
    total = maps.sum((1, 2))
    return inside / total.where(total > 0, 1)


def mean_focus(maps: Tensor, samples: Samples, role: int, definition: str, region: str) -> Tensor:
    """(N,): the focus divided by the pixels it lies on."""
    if definition == "authors":
        pixels = samples.parts(role, region).sum((1, 2, 3))
    else:
        pixels = samples.region(role, region).sum((1, 2))
    return focus(maps, samples, role, definition, region) / pixels.clamp(min=1)


def overlap(maps: Tensor, samples: Samples, role: int, definition: str, region: str) -> Tensor:
    """(N,): intersection over union of one role's region and as many top pixels as the primary region has."""
    if definition == "authors":
        return _overlap_of_the_authors(maps, samples, role, region)
    chosen = top(maps, samples.region(PRIMARY, region).sum((1, 2)), samples.batch.seeds)
    truth = samples.region(role, region)
    return (chosen & truth).sum((1, 2)).double() / (chosen | truth).sum((1, 2)).clamp(min=1)


def _overlap_of_the_authors(maps: Tensor, samples: Samples, role: int, region: str) -> Tensor:
    wanted = samples.parts(PRIMARY, region).sum((1, 2, 3))
    chosen = (maps >= _bin_edge(maps, wanted)[:, None, None])[:, None]
    parts = samples.parts(role, region)
    each = (chosen & parts).sum((2, 3)).double() / (chosen | parts).sum((2, 3)).clamp(min=1)
    count = (samples.roles == role).sum(1)
    return each.where(samples.roles == role, 0).sum(1) / count.clamp(min=1)


def _bin_edge(maps: Tensor, wanted: Tensor) -> Tensor:
    """(N,): the lower edge of the highest of ten histogram bins above which lie at least `wanted` pixels."""
    flat = maps.flatten(1)
    low, high = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)
    edges = (
        torch.arange(10, dtype=flat.dtype, device=flat.device) * ((high - low) / 10) + low
    )  # (N, 10), as numpy has them
    above = torch.stack([(flat >= edge[:, None]).sum(1) for edge in edges.unbind(1)], 1)  # falls with the edge
    enough = (above >= wanted[:, None]).sum(1) - 1
    return edges.gather(1, enough.clamp(min=0)[:, None])[:, 0]
