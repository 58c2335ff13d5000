"""LRP-epsilon: like LRP-z, with sums kept away from zero (Bach et al., 2015); see _lrp.py for the patent notice."""

from saliometer.methods._lrp import relevances, table, z
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rules=table(z(1.0), z(1.0)), passes=2, unit="contribution", multiplier="input")
def lrp_epsilon(model: Model, batch: Batch, *, epsilon: float = 1.0, scale: str = "absolute") -> Asking:
    """Like lrp_z with epsilon added to every sum; scale=rms makes it a share of each layer's own size (try 0.25)."""
    one_of("scale", scale, ("absolute", "rms"))
    if epsilon < 0:
        raise ValueError(f"lrp_epsilon: epsilon={epsilon}, wanted 0 or more")
    rule = z(epsilon, scale)
    return (yield from relevances(batch, table(rule, rule)))
