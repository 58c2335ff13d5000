"""LRP-gamma: epsilon in dense layers, gamma in convolutions, bounds at the input; see _lrp.py for the patent notice."""

from saliometer.methods._lrp import gamma as gamma_rule
from saliometer.methods._lrp import keep, layered, relevances, table, w_square, z, z_box
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model


@method(rules=table(layered(w_square, gamma_rule(0.25), z(1e-6)), keep), passes=3, usual=False, unit="contribution")
def lrp_gamma(model: Model, batch: Batch, *, gamma: float = 0.25, epsilon: float = 1e-6) -> Asking:
    """Gamma in convolutions, epsilon in dense layers, the box rule at the input (zennit's EpsilonGammaBox)."""
    if gamma < 0 or epsilon < 0:
        raise ValueError(f"lrp_gamma: gamma={gamma}, epsilon={epsilon}; wanted 0 or more")
    kernel = layered(z_box(*model.bounds(batch.images)), gamma_rule(gamma), z(epsilon))
    return (yield from relevances(batch, table(kernel, keep)))
