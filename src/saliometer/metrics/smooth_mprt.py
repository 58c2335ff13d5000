"""Smooth MPRT: the randomisation test on maps averaged over noisy copies of the image (Hedström et al., 2024)."""

from torch import Tensor

from saliometer.metrics._randomised import DEGENERATE, PARTS, alike, checked, stage
from saliometer.registry import metric
from saliometer.types import Scored


@metric(
    better="lower",
    formula="mean over stages k and draws of s(Ē, Ēₖ), Ē the mean of E(x + n) over noise n, the last copy clean",
    bounds=(-1, 1),
    pairs=True,
    randomises=True,
    stage=stage,
    passes=4500,
    random=True,
    parts=PARTS,
    degenerate=DEGENERATE,
)
def smooth_mprt(
    maps: Tensor,
    others: Tensor,
    valid: Tensor | None = None,
    *,
    order: str = "bottom_up",
    by: str = "block",
    draws: int = 5,
    similarity: str = "spearman_abs",
    scaling: str = "second_moment",
    target: str = "fixed",
    norms: str = "reestimate",
    multiplier: str = "keep",
    layers: str = "all",
    samples: int = 50,
    noise: float = 0.1,
) -> Scored:
    """mprt of maps that are the mean over noisy copies of an image, by the method itself; read it as mprt is read.

    `noise` is the standard deviation as a share of each image's own range; the copies are the same for every model.
    """
    checked("smooth_mprt", order=order, by=by, draws=draws, scaling=scaling, target=target, norms=norms,
            multiplier=multiplier, samples=samples)  # fmt: skip
    if noise < 0:
        raise ValueError(f"smooth_mprt: noise={noise}, wanted 0 or more")
    return alike(maps, others, valid, similarity, scaling)
