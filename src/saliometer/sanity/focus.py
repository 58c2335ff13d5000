"""Whether a map lies on what decides: masks A (deciding) and N (distracting) of each image, (n, H, W) bool.

Maps are shares (..., n, H, W), as `effect.shares` gives them; values come one for each map, NaN where undefined.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.seeds import uniform


def focus(shares: Tensor, deciding: Tensor, distracting: Tensor) -> Tensor:
    """F, (..., n): of the mass on both regions, the share on A; NaN where there is none, or a region is empty."""
    ours, others = _mass(shares, deciding), _mass(shares, distracting)
    both = ours + others
    return (ours / both.where(both > 0, torch.nan)).where(_there(deciding, distracting), torch.nan)


def coverage(shares: Tensor, deciding: Tensor, distracting: Tensor) -> Tensor:
    """(..., n): the share of the mass that lies on either region at all; NaN where there is neither."""
    either = deciding | distracting
    return _mass(shares, either).where(either.flatten(1).any(1), torch.nan)


def area_share(deciding: Tensor, distracting: Tensor) -> Tensor:
    """(n,) |A| / (|A| + |N|): the focus of a flat map."""
    ours, others = (mask.sum((1, 2)).double() for mask in (deciding, distracting))
    return (ours / (ours + others)).where(_there(deciding, distracting), torch.nan)


def auroc(shares: Tensor, deciding: Tensor, distracting: Tensor) -> Tensor:
    """(..., n): how often a pixel of A is above one of N, ties counting half."""
    either = deciding | distracting
    values = shares.double().masked_fill(~either, -1.0).flatten(-2)  # pixels of neither stand below all
    ordered = values.sort(-1).values
    places = (torch.searchsorted(ordered, values) + torch.searchsorted(ordered, values, right=True) + 1).double() / 2
    ours, others = (mask.flatten(1).sum(1).double() for mask in (deciding, distracting))
    below = (~either).flatten(1).sum(1)
    total = (places * deciding.flatten(1)).sum(-1) - ours * below  # ranks from 1 among the pixels of both
    found = (total - ours * (ours + 1) / 2) / (ours * others)
    return found.where(_there(deciding, distracting) & ~shares.isnan().any(-1).any(-1), torch.nan)


def pointing(shares: Tensor, deciding: Tensor, seeds: Tensor) -> Tensor:
    """(..., n): 1 where the highest pixel of the whole map lies on A; ties fall by seed. NaN where A is empty."""
    flat = shares.flatten(-2).nan_to_num(0)  # (..., n, P)
    highest = flat == flat.amax(-1, keepdim=True)
    crowded = (highest.sum(-1) > 1).nonzero(as_tuple=True)
    lots = uniform(seeds[crowded[-1]], "ties", flat.shape[-1]).masked_fill(~highest[crowded], -1.0)
    highest[crowded] = torch.zeros_like(highest[crowded]).scatter_(1, lots.argmax(1, keepdim=True), True)
    hits = (highest & deciding.flatten(1)).any(-1).double()
    return hits.where(deciding.flatten(1).any(1) & ~shares.isnan().any(-1).any(-1), torch.nan)


def dilated(deciding: Tensor, distracting: Tensor, by: int = 2) -> tuple[Tensor, Tensor]:
    """Both masks grown by some pixels to every side, and what they now share taken from both."""
    grown = [
        F.max_pool2d(mask[:, None].float(), 2 * by + 1, stride=1, padding=by)[:, 0] > 0
        for mask in (deciding, distracting)
    ]
    return grown[0] & ~grown[1], grown[1] & ~grown[0]


def dissociation(one: Tensor, other: Tensor) -> Tensor:
    """DD, (R, n): the focus of each model on what decides under the first labelling, less that under the second.

    Both are the focus on the *same* region of the same images; models of one seed stand side by side.
    """
    if one.shape != other.shape:
        raise ValueError(
            f"focus of shapes {tuple(one.shape)} and {tuple(other.shape)}: wanted the same images and seeds"
        )
    return one - other


def gain(trained: Tensor, random: Tensor) -> Tensor:
    """What training adds, as a share of what was left to gain: (F_trained - F_random) / (1 - F_random)."""
    return (trained - random) / (1 - random)


def _mass(shares: Tensor, mask: Tensor) -> Tensor:
    return (shares * mask).sum((-2, -1), dtype=torch.float64)


def _there(deciding: Tensor, distracting: Tensor) -> Tensor:
    return deciding.flatten(1).any(1) & distracting.flatten(1).any(1)
