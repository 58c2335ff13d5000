"""How far a model's training moves its maps: beyond what two trainings, or two random draws, differ anyway.

Yona & Greenfeld (2021) put it as an effect of the model on the map; sanity.md 3.2 makes numbers of it. Models stand in
one order everywhere: first the R trained ones, then the J random ones, M = R + J.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import combinations
from math import comb

import torch
from torch import Tensor

from saliometer.registry import one_of
from saliometer.sanity.similarity import similarity
from saliometer.seeds import fork, forks, uniform

DISTANCES = ("total_variation", "spearman_abs", "spearman", "ssim", "hog")
EXACT = 200_000  # splits that are all gone through; of more, some are drawn
DRAWS = 99_999
ROOM = 1 << 26  # values that are compared together


def shares(maps: Tensor) -> tuple[Tensor, Tensor]:
    """phi, (..., H, W): the share of the map's mass on each pixel, of signed maps (..., C, H, W); (...) which have one.

    Absolute values are summed over channels. A map without mass, or not finite, is NaN.
    """
    strength = maps.abs().amax((-3, -2, -1), keepdim=True)
    strength = (maps / strength.where(strength > 0, 1)).abs().sum(-3)  # scaled first: no square or sum is lost
    mass = strength.sum((-2, -1), keepdim=True)
    valid = mass.isfinite() & (mass > 0)
    return (strength / mass).where(valid, torch.nan), valid[..., 0, 0]


def pairwise(maps: Tensor, distance: str = "total_variation", scaling: str = "plain") -> Tensor:
    """(n, M, M) float64: between the maps of all models on each image; maps (M, n, C, H, W) are signed.

    `total_variation` is half the L1 difference of shares; the others are 1 minus a similarity, in one of its scalings
    (similarity.py). NaN without a map.
    """
    one_of("distance", distance, DISTANCES)
    count, images = maps.shape[:2]
    together = max(1, ROOM // maps[:, 0].numel())
    measure = (
        _total_variation if distance == "total_variation" else partial(_dissimilarity, name=distance, scaling=scaling)
    )
    parts = [measure(maps[:, start : start + together]) for start in range(0, images, together)]
    return torch.cat(parts) if parts else maps.new_empty((0, count, count), dtype=torch.float64)


def _total_variation(maps: Tensor) -> Tensor:
    flat = shares(maps)[0].flatten(2).transpose(0, 1)  # (n, M, P)
    apart = torch.cdist(flat.nan_to_num(0), flat.nan_to_num(0), p=1).double() / 2
    known = ~flat.isnan().any(2)
    return apart.where(known[:, :, None] & known[:, None, :], torch.nan)


def _dissimilarity(maps: Tensor, name: str, scaling: str) -> Tensor:
    measure, (count, images) = similarity(name, maps.shape, scaling), maps.shape[:2]
    read = measure.read(maps.flatten(0, 1)).unflatten(0, (count, images))
    found = maps.new_zeros((images, count, count), dtype=torch.float64)
    for place in range(count - 1):
        others = read[place + 1 :]
        alike = measure.compare(read[place].expand_as(others).flatten(0, 1), others.flatten(0, 1)).view(-1, images)
        found[:, place, place + 1 :] = found[:, place + 1 :, place] = 1 - alike.T
    return found


@dataclass(frozen=True)
class Energy:
    """The mean distances between trained and random models, among trained ones and among random ones."""

    between: float
    trained: float
    random: float

    @property
    def energy(self) -> float:
        """E: what lies between beyond both noise floors; 0 where trained and random maps come from one distribution."""
        return self.between - (self.trained + self.random) / 2

    @property
    def normalised(self) -> float:
        """The share of the difference between trained and random that is not seed noise."""
        return self.energy / (self.between + 1e-12)


def energy(distances: Tensor, trained: int) -> Energy:
    """Over all images, from (n, M, M) distances; an invalid map is left out of every mean."""
    return Energy(*(term.item() for term in _terms(averaged(distances), _labels(distances, trained))))


def energy_per_image(distances: Tensor, trained: int) -> Tensor:
    """(n,) E of each image; NaN where too few of its maps are valid."""
    between, first, second = _terms(distances, _labels(distances, trained))
    return between - (first + second) / 2


def energy_per_seed(distances: Tensor, trained: int) -> Tensor:
    """(R,) what each trained model adds to E, which is their mean; the random models are the same for all."""
    matrix = averaged(distances)
    _labels(distances, trained)
    ours, others = matrix[:trained, :trained].clone().fill_diagonal_(torch.nan), matrix[:trained, trained:]
    spread = matrix[trained:, trained:].clone().fill_diagonal_(torch.nan)
    return others.nanmean(1) - (ours.nanmean(1) + spread.nanmean()) / 2


def averaged(distances: Tensor) -> Tensor:
    """(M, M): the mean over the images on which both models have a map; NaN where there is none."""
    return distances if distances.ndim == 2 else distances.nanmean(0)


def _labels(distances: Tensor, trained: int) -> Tensor:
    """(1, M) float64: 1 for trained models."""
    count = distances.shape[-1]
    if trained < 2 or count - trained < 2:
        raise ValueError(
            f"{trained} trained and {count - trained} random models: wanted two or more of each, or there is no noise "
            "floor to compare with"
        )
    return (torch.arange(count, device=distances.device) < trained).double()[None]


def _terms(matrices: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """B, W_T and W_R for each row of labels (K, M) and (M, M) distances, or (n, M, M) and one row."""
    matrices = matrices.clone()
    matrices.diagonal(dim1=-2, dim2=-1).fill_(torch.nan)  # pairs of different models only
    known, apart = (~matrices.isnan()).double(), matrices.double().nan_to_num(0)
    rest = 1 - labels

    def mean(one: Tensor, other: Tensor) -> Tensor:
        total, weight = (((one @ some) * other).sum(-1) for some in (apart, known))
        return (total / weight).squeeze(-1) if matrices.ndim == 3 else total / weight

    return mean(labels, rest), mean(labels, labels), mean(rest, rest)


@dataclass(frozen=True)
class Permutation:
    """How often a split of the models by lot gives as large an E as trained and random do."""

    p: float
    splits: int  # that were gone through
    exact: bool  # all there are


def permutation(distances: Tensor, trained: int, *, draws: int = DRAWS, seed: int = 0) -> Permutation:
    """One-sided, over the models' labels, the statistic averaged over images; (n, M, M) or already averaged (M, M)."""
    matrix, count = averaged(distances), distances.shape[-1]
    own = _labels(distances, trained)
    exact = comb(count, trained) <= EXACT
    labels = _all_splits(count, trained).to(own) if exact else _some_splits(count, trained, draws, seed, own)

    def statistic(labels: Tensor) -> Tensor:
        between, first, second = _terms(matrix, labels)
        return between - (first + second) / 2

    found, here = statistic(labels), statistic(own)
    if not bool(here.isfinite().all()):
        return Permutation(float("nan"), len(labels), exact)
    as_large = int((found >= here - 1e-12).sum())
    return Permutation((as_large + (not exact)) / (len(labels) + (not exact)), len(labels), exact)


@lru_cache(maxsize=8)
def _all_splits(count: int, trained: int) -> Tensor:
    chosen = torch.tensor(list(combinations(range(count), trained)))
    return torch.zeros(len(chosen), count, dtype=torch.float64).scatter_(1, chosen, 1.0)


def _some_splits(count: int, trained: int, draws: int, seed: int, like: Tensor) -> Tensor:
    seeds = forks(fork("splits", seed), torch.arange(draws, device=like.device))
    chosen = uniform(seeds, "split", count).argsort(dim=1, stable=True)[:, :trained]
    return like.new_zeros(draws, count).scatter_(1, chosen, 1.0)


# Equation (1)


def posterior(chances: Mapping[str, float]) -> dict[str, float]:
    """Pr(T = t | X = x) under equal priors, from the chance that each task shows this very image, up to one factor."""
    total = sum(chances.values())
    if not total > 0 or min(chances.values()) < 0:
        raise ValueError(
            f"chances {dict(chances)}: wanted none below 0 and one above, for some task must show the image"
        )
    return {task: chance / total for task, chance in chances.items()}


@dataclass(frozen=True, eq=False)
class Weighted:
    """Equation (1) on each image, as half the L1 norm, in [0, 1]."""

    effect: Tensor  # (n,) of the weighted sum over tasks, in which effects may cancel
    companion: Tensor  # (n,) the weighted mean of the tasks' own norms, in which they cannot
    effect_bias: Tensor  # (n,) what relabelled models give: finite numbers of models alone
    companion_bias: Tensor

    @property
    def corrected(self) -> Tensor:
        return self.effect - self.effect_bias

    @property
    def companion_corrected(self) -> Tensor:
        return self.companion - self.companion_bias


def weighted_effect(
    trained: Mapping[str, Tensor], random: Tensor, weights: Mapping[str, float | Tensor], *, relabellings: int = 100,
    seed: int = 0,
) -> Weighted:  # fmt: skip
    """From shares: of each task's models (R, n, H, W), of the random ones (J, n, H, W), and posterior weights.

    The bias is the mean over `relabellings`, in which all models, trained and random, change places by lot: the random
    ones are shared by the tasks, and so is their noise.
    """
    if set(trained) != set(weights):
        raise ValueError(f"maps are of the tasks {sorted(trained)}, weights of {sorted(weights)}: wanted the same")
    sizes = [*(len(maps) for maps in trained.values()), len(random)]
    pool = torch.cat((*trained.values(), random)).flatten(2)  # (M, n, P)
    known, pool = ~pool.isnan().any(2), pool.nan_to_num(0)

    def norms(order: Tensor) -> tuple[Tensor, Tensor]:
        """With models in this order: each task's, then the random ones."""
        *ours, others = (_means(pool, known, some) for some in order.split(sizes))
        total, companion = torch.zeros(()).to(pool), torch.zeros(()).to(pool)
        for task, mean in zip(trained, ours, strict=True):
            weight = torch.as_tensor(weights[task], dtype=pool.dtype, device=pool.device)
            total = total + weight.view(-1, 1) * (mean - others)
            companion = companion + weight * (mean - others).abs().sum(1) / 2
        return total.abs().sum(1) / 2, companion

    effect, companion = norms(torch.arange(len(pool), device=pool.device))
    biases = [torch.zeros_like(effect), torch.zeros_like(companion)]
    seeds = forks(fork("relabelling", seed), torch.arange(relabellings, device=pool.device))
    for order in uniform(seeds, "order", len(pool)).argsort(dim=1, stable=True):
        for bias, value in zip(biases, norms(order), strict=True):
            bias += value / relabellings
    return Weighted(effect, companion, *biases)


def _means(pool: Tensor, known: Tensor, chosen: Tensor) -> Tensor:
    """(n, P): the mean map of some models over those that have one; NaN without any."""
    share = known[chosen].double()
    return torch.einsum("mn,mnp->np", (share / share.sum(0)).to(pool), pool[chosen])
