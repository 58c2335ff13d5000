"""LRP-z: relevance in proportion to each input's part of the sum (Bach et al., 2015); patent notice in _lrp.py."""

from saliometer.methods._lrp import relevances, table, z
from saliometer.registry import method
from saliometer.types import Asking, Batch, Model

RULES = table(z(), z())


@method(rules=RULES, passes=2, usual=False, unit="contribution", multiplier="input")
def lrp_z(model: Model, batch: Batch) -> Asking:
    """Relevance in proportion to each input's part of every sum; equals input x gradient on ReLU networks."""
    return (yield from relevances(batch, RULES))
