"""LRP-alpha-beta: what speaks for and against a unit, kept apart (Bach et al., 2015); patent notice in _lrp.py."""

from saliometer.methods._lrp import BIASES, alpha_beta, keep, relevances, table
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rules=table(alpha_beta(2, 1), keep), passes=4, unit="contribution", multiplier="input")
def lrp_alpha_beta(model: Model, batch: Batch, *, alpha: float = 2.0, beta: float = 1.0, bias: str = "split") -> Asking:
    """Alpha of a unit's relevance to what speaks for it, minus beta to what speaks against it; alpha - beta is 1."""
    one_of("bias", bias, BIASES)
    if beta < 0 or abs(alpha - beta - 1) > 1e-9:
        raise ValueError(f"lrp_alpha_beta: alpha={alpha}, beta={beta}; wanted beta of 0 or more and alpha - beta = 1")
    return (yield from relevances(batch, table(alpha_beta(alpha, beta, bias), keep)))
