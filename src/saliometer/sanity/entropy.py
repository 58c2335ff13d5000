"""How many values a map takes: the entropy of its histogram, for efficient MPRT (Hedström et al., 2024)."""

import torch
from torch import Tensor


def entropy(maps: Tensor, bins: int = 100) -> Tensor:
    """(N,) float64: of a histogram of (N, H, W) over each map's own range, in nats; NaN where a map is constant."""
    flat = maps.flatten(1).double()
    low, high = flat.aminmax(dim=1, keepdim=True)
    shares = torch.linspace(0, 1, bins + 1, dtype=torch.float64, device=flat.device)
    edges = low + (high - low) * shares
    places = (torch.searchsorted(edges, flat, right=True) - 1).clamp(0, bins - 1)
    counts = torch.zeros(len(flat), bins, dtype=torch.float64, device=flat.device)
    counts.scatter_add_(1, places, torch.ones_like(flat))  # whole numbers, so in any order the same
    shares = counts / counts.sum(1, keepdim=True)
    found: Tensor = -torch.xlogy(shares, shares).sum(1)
    return found.where((high > low)[:, 0] & (high - low).isfinite()[:, 0], torch.nan)
