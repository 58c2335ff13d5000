"""LRP preset A, flat: what iNNvestigate calls so and SMERF tested; see _lrp.py for the patent notice."""

from saliometer.methods._lrp import BIASES, alpha_beta, flat, keep, layered, relevances, table, z
from saliometer.registry import method, one_of
from saliometer.types import Asking, Batch, Model


@method(rules=table(layered(flat, alpha_beta(1, 0), z(1.0)), keep), passes=3, unit="contribution")
def lrp_preset_a_flat(model: Model, batch: Batch, *, epsilon: float = 1.0, bias: str = "split") -> Asking:
    """Alpha-1-beta-0 in convolutions, epsilon in dense layers, flat in the first layer."""
    one_of("bias", bias, BIASES)
    if epsilon < 0:
        raise ValueError(f"lrp_preset_a_flat: epsilon={epsilon}, wanted 0 or more")
    kernel = layered(flat, alpha_beta(1, 0, bias), z(epsilon))
    return (yield from relevances(batch, table(kernel, keep)))
