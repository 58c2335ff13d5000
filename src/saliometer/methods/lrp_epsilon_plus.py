"""LRP epsilon-plus: alpha 1, beta 0 in convolutions, epsilon in dense layers; see _lrp.py for the patent notice."""

from saliometer.methods._lrp import alpha_beta, keep, layered, relevances, table, z
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model

PLUS = alpha_beta(1, 0)


@method(rules=table(layered(PLUS, PLUS, z(1e-6)), keep), passes=3, usual=False, unit="contribution", multiplier="input")
def lrp_epsilon_plus(model: Model, batch: Batch, *, epsilon: float = 1e-6) -> Asking:
    """Alpha-1-beta-0 in convolutions, epsilon in dense layers (zennit's EpsilonPlus)."""
    if epsilon < 0:
        raise ValueError(f"lrp_epsilon_plus: epsilon={epsilon}, wanted 0 or more")
    return (yield from relevances(batch, table(layered(PLUS, PLUS, z(epsilon)), keep)))
