"""Coalitions of segments, weighted so that a least squares fit gives Shapley values (Lundberg and Lee, 2017)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from saliometer.seeds import forks, uniform

MORE = 4  # times as many rows for an image whose first rows leave its fit open


@dataclass(frozen=True, eq=False)
class Coalitions:
    """Which of each image's segments play, in `count` rows, the whole and the empty image not among them."""

    present: Tensor  # (N, S) bool: the segments that the image has
    switches: Tensor  # (count, N, S) bool
    weights: Tensor  # (count, N) float64; 0 for rows beyond those that the image needs
    inverse: Tensor  # (N, S, S) float64: the pseudo-inverse of the fit's normal matrix
    open: Tensor  # (N,) bool: too few rows for a unique fit

    def shapley(self, gains: Tensor, change: Tensor) -> Tensor:
        """(N, S) float64: the fit to (count, N) gains over the empty image, its sum held at the (N,) whole change.

        Every segment gets an even share, and the fit is made of deviations from it, which sum to 0. That is the
        elimination of one segment from the regression, but without choosing which; an open fit has the least norm.
        """
        even = change / self.present.sum(1)
        gaps = gains - self.switches.sum(2) * even  # what the even shares leave open
        slopes = torch.einsum("kns,kn->ns", _centred(self.switches, self.present), self.weights * gaps)
        return ((self.inverse @ slopes[..., None])[..., 0] + even[:, None]) * self.present


def coalitions(seeds: Tensor, present: Tensor, samples: int) -> Coalitions:
    """All coalitions where that takes no more rows than samples (0: 2048 + 2 S), else sampled ones with complements."""
    sizes = present.sum(1)
    counts = torch.full_like(sizes, samples) if samples else 2048 + 2 * sizes
    found = _fitted(seeds, present, counts)
    if found.open.any():
        found = _fitted(seeds, present, counts.where(~found.open, MORE * counts))
    return found


def _fitted(seeds: Tensor, present: Tensor, counts: Tensor) -> Coalitions:
    sizes = present.sum(1)
    every = 2.0 ** sizes.double() - 2  # coalitions that there are
    all_of_them = every <= counts
    rows = torch.where(all_of_them, every.long(), counts - counts % 2)  # samples come in pairs
    most = max(1, int(rows.max()))
    sampled = _sampled(seeds, present, most)
    switches = torch.where(all_of_them[:, None], _enumerated(present, most), sampled)
    used = torch.arange(most, device=seeds.device)[:, None] < rows
    weights = torch.where(all_of_them, _kernel(switches.sum(2), sizes), 1.0) * used
    switches = torch.where(used[..., None], switches, switches[:1])
    centred = _centred(switches, present)
    values, vectors = torch.linalg.eigh(torch.einsum("kns,kn,knt->nst", centred, weights, centred))
    kept = values > 1e-9 * values.amax(1, keepdim=True).clamp(min=1e-300)
    inverse = vectors @ ((kept / values.where(kept, 1))[..., None] * vectors.mT)
    return Coalitions(present, switches, weights, inverse, kept.sum(1) < sizes - 1)


def _kernel(playing: Tensor, sizes: Tensor) -> Tensor:
    """(S - 1) / (binomial(S, k) k (S - k)) for k of S segments playing."""
    k, size = playing.double().clamp(min=1), sizes.double()
    ways = ((size + 1).lgamma() - (k + 1).lgamma() - (size - k + 1).lgamma()).exp().round()
    return (size - 1) / (ways * k * (size - k).clamp(min=1))


def _centred(switches: Tensor, present: Tensor) -> Tensor:
    """(count, N, S) float64: each row less its mean over the image's segments."""
    rows = switches.double()
    return (rows - rows.sum(2, keepdim=True) / present.sum(1, keepdim=True)) * present


def _enumerated(present: Tensor, most: int) -> Tensor:
    """(most, N, S) bool: row r - 1 is r in binary."""
    rows = torch.arange(1, most + 1, device=present.device)[:, None, None]
    digits = torch.arange(present.shape[1], device=present.device).clamp(max=62)
    return (rows >> digits & 1).bool() & present


def _sampled(seeds: Tensor, present: Tensor, most: int) -> Tensor:
    """(most, N, S) bool: how many play is drawn by 1 / (k (S - k)), who plays is up to the lot; then the complement."""
    streams = forks(seeds[:, None], torch.arange((most + 1) // 2, device=seeds.device))  # one for each pair
    lots = uniform(streams.flatten(), "kernel_shap", 1 + present.shape[1]).view(*streams.shape, -1)
    sizes = present.sum(1, keepdim=True)
    k = torch.arange(1, max(2, present.shape[1]), device=seeds.device)
    chances = torch.where(k < sizes, 1 / (k * (sizes - k)).clamp(min=1).double(), 0)
    below = chances.cumsum(1) / chances.sum(1, keepdim=True).clamp(min=1e-300)
    playing = 1 + torch.searchsorted(below, lots[..., 0].double().contiguous(), right=True)
    order = lots[..., 1:].masked_fill(~present[:, None], 2).argsort(dim=2, stable=True).argsort(2)
    chosen = order < playing.clamp(max=sizes - 1)[..., None]
    pairs = torch.stack((chosen, ~chosen & present[:, None]), 2)  # (N, pairs, 2, S)
    return pairs.flatten(1, 2)[:, :most].transpose(0, 1)
