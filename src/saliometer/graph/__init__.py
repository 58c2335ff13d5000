"""A network as a list of operations, for methods that walk it backwards by rules."""

from saliometer.graph.capture import Graph, Ref, Step, UnfitError, once
from saliometer.graph.families import ceiling, family, gate_of, is_affine_behind, is_mask, kernel_places
from saliometer.graph.folding import scale_and_shift
from saliometer.graph.network import Network, modules_of, state_of
from saliometer.graph.walk import Chosen, Here, Pass, RefusedError, Rules, Signals, refusal, transpose, walk

__all__ = [
    "Chosen",
    "Graph",
    "Here",
    "Network",
    "Pass",
    "Ref",
    "RefusedError",
    "Rules",
    "Signals",
    "Step",
    "UnfitError",
    "ceiling",
    "family",
    "gate_of",
    "is_affine_behind",
    "is_mask",
    "kernel_places",
    "modules_of",
    "once",
    "refusal",
    "scale_and_shift",
    "state_of",
    "transpose",
    "walk",
]
