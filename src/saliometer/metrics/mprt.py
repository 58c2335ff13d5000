"""MPRT, the model parameter randomisation test: do maps change when layers are drawn anew (Adebayo et al., 2018)."""

from torch import Tensor

from saliometer.metrics._randomised import DEGENERATE, PARTS, alike, checked, stage
from saliometer.registry import metric
from saliometer.types import Scored


@metric(
    better="lower",
    formula="mean over stages k and draws of s(E, Eₖ), Eₖ after layers are drawn anew, s a similarity; k > 0",
    bounds=(-1, 1),
    pairs=True,
    randomises=True,
    stage=stage,
    passes=90,
    random=True,
    parts=PARTS,
    degenerate=DEGENERATE,
)
def mprt(
    maps: Tensor,
    others: Tensor,
    valid: Tensor | None = None,
    *,
    order: str = "top_down",
    by: str = "block",
    draws: int = 5,
    similarity: str = "spearman_abs",
    scaling: str = "plain",
    target: str = "fixed",
    norms: str = "reestimate",
    multiplier: str = "keep",
    layers: str = "all",
) -> Scored:
    """How alike maps stay while layers are drawn anew; noise has the lowest value, edges the highest: neither explains.

    Here: the similarity of two stacks of attributions (N, C, H, W), over `valid` pixels (N, H, W) where ranks count.
    Orders are top_down, bottom_up, independent and full.
    """
    checked("mprt", order=order, by=by, draws=draws, scaling=scaling, target=target, norms=norms, multiplier=multiplier)
    return alike(maps, others, valid, similarity, scaling)
