"""Complexity: the entropy of a map's shares, how many pixels one has to look at (Bhatt et al., 2020)."""

from math import inf

from torch import Tensor

from saliometer.registry import metric
from saliometer.types import Samples, Scored, Subject

TINY = 1e-12  # inside the logarithm


@metric(
    better="lower",
    formula="−Σ s ln(s + 10⁻¹²), with s = m ⁄ Σ m the share of each pixel",
    bounds=(0, inf),
    reads="scaled",
    flat=True,
    passes=0,
    degenerate=("ln n", "invalid, it has no shares", "0"),
)
def complexity(maps: Tensor, samples: Samples, subject: Subject) -> Scored:
    """The entropy in nats of each pixel's share in the map: ln k for k equal pixels, ln n at most."""
    values = maps.flatten(1).double()
    mass = values.sum(1, keepdim=True)
    shares = values / mass.where(mass > 0, 1.0)
    entropy = (shares * (shares + TINY).log()).sum(1).neg().clamp(min=0)
    return Scored(entropy, invalid={"a map of zeros has no shares": mass[:, 0] == 0})
