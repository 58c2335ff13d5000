"""DeepLIFT's Rescale rule: multipliers that say how an output's difference to a reference comes about."""

import torch
from torch import Tensor

from saliometer import fused
from saliometer.graph import Chosen, Here, Network, Pass, Rules, Signals
from saliometer.methods._path import vanishes
from saliometer.methods._rules import LINEAR
from saliometer.perturb import SHARED
from saliometer.types import Explained

NEAR = 32  # differences below so many machine epsilons are rounding


def near(value: Tensor, reference: Tensor) -> Tensor:
    """Where two activations are the same up to rounding."""
    size = torch.maximum(value.abs(), reference.abs()).clamp(min=1)
    return (value - reference).abs() <= NEAR * torch.finfo(value.dtype).eps * size


def before(here: Here, place: int | None = None) -> tuple[Tensor, Tensor]:
    """An input of this step, and the same at the reference."""
    number = here.step.inputs[here.main if place is None else place]
    return here.forward.values[number], here.reference.values[number]


def after(here: Here) -> tuple[Tensor, Tensor]:
    return here.output, here.reference.values[here.step.number]


def compared(network: Network, forward: Pass, start: Tensor, baseline: str) -> Chosen:
    """The pass over baselines that a pass is compared with; one row of it is enough where all images have the same."""
    if baseline in SHARED and len(start) > 1 and _apart(forward, len(start)):
        one = network.run(start[:1], fold=True, slopes=False)
        if _apart(one, 1):
            return Chosen(one, torch.zeros(1, dtype=torch.int64, device=start.device), len(start))
    return Chosen(network.run(start, fold=True, slopes=False))


def _apart(forward: Pass, count: int) -> bool:
    """Whether images stay along the first dimension throughout a network."""
    return all(isinstance(value, Tensor) and len(value) == count for value in forward.values.values())


def slope(here: Here, value: Tensor) -> Tensor:
    """The derivative of an elementwise step at other values."""
    with torch.enable_grad():
        leaf = value.detach().requires_grad_()
        replaced = {number: leaf if place == here.main else leaf > 0 for place, number in enumerate(here.step.inputs)}
        output = here.step(replaced)
        return torch.autograd.grad(output.sum(), leaf)[0]


def rescale(here: Here, multipliers: Tensor) -> Signals:
    """An elementwise step: its difference over that of its input; their limit where the input does not differ."""
    (value, reference), (output, expected) = before(here), after(here)
    still = near(value, reference)
    ratio = (output - expected) / (value - reference).where(~still, 1)
    return here.only(multipliers * torch.where(still, slope(here, (value + reference) / 2), ratio))


def rectify(here: Here, multipliers: Tensor) -> Signals:
    """A ReLU: the share of the way from reference r to value v on which it is open, exact however small the difference.

    That is (v+ + r+) / (|v| + |r|): 1 or 0 where both have one sign, else the positive one's part of the way.
    """
    value, reference = here.reference.beside(here.step.inputs[here.main], here.forward)
    if kernels := fused.kernels(value, reference, multipliers):
        return here.only(kernels.rectified(value, reference, multipliers))
    output, expected = here.reference.beside(here.step.number, here.forward)
    length = value.abs() + reference.abs().add_(torch.finfo(value.dtype).tiny)
    share = (output + expected).div_(length)
    return here.only(share.view_as(multipliers).mul_(multipliers))


def product(here: Here, multipliers: Tensor) -> Signals:
    """u v: each factor's difference counts at the other's middle."""
    if len(here.inputs) == 1:  # a square
        value, reference = before(here)
        return here.only(multipliers * (value + reference))
    (u, u0), (v, v0) = before(here, 0), before(here, 1)
    middles = ((v + v0) / 2, (u + u0) / 2)
    return [(multipliers * m).sum_to_size(f.shape) for m, f in zip(middles, (u, v), strict=True)]


def maximum(here: Here, multipliers: Tensor) -> Signals:
    """A maximum: what it gained goes to the winner, what it lost to the reference's winner, over all its windows."""
    (value, reference), (output, expected) = before(here), after(here)
    most = torch.maximum(output, expected)
    gained = here.back(multipliers * (most - expected))[0]
    lost = here.reference.back(here.step.number, multipliers * (output - most))[0]
    assert gained is not None
    assert lost is not None
    difference = value - reference
    return [((gained + lost) / difference.where(difference != 0, 1)).where(difference != 0, 0)]


RESCALE: Rules = {
    **LINEAR,
    "relu": rectify,
    **dict.fromkeys(("relu_capped", "from_zero", "gate", "elementwise"), rescale),
    **dict.fromkeys(("product", "gated"), product),
    "max": maximum,
}


def difference(maps: Tensor, risen: list[Tensor], way: Tensor) -> Explained:
    """Maps that sum to the rise in score exactly, up to rounding."""
    promised = torch.cat(risen)
    residual = maps.sum((1, 2, 3), dtype=torch.float64) - promised
    flags = {
        "equal_baseline": vanishes(way),
        "loose": residual.abs() > 1e-3 * promised.abs().clamp(min=1e-6),
    }
    return Explained(maps, residual, promised, flags)
