"""What the methods that walk the network share: where a signal starts, and the rules of linear operations."""

import math

import torch
from torch import Tensor

from saliometer import fused
from saliometer.graph import Here, Network, Rules, Signals, ceiling, transpose, walk
from saliometer.methods._path import vanishes
from saliometer.registry import one_of
from saliometer.types import Asking, Batch, Explained, Walk

LINEAR: Rules = dict.fromkeys(
    ("kernel", "average", "norm", "add", "shift", "scale", "route", "same", "affine"), transpose
)
OTHER: Rules = dict.fromkeys(
    ("from_zero", "gate", "elementwise", "gated", "product"), transpose
)  # where `other` is 'gradient'


def _guided(here: Here, signal: Tensor) -> Signals:
    """Only what is positive, and only where the ReLU was open on the way forward."""
    before: Tensor = here.inputs[here.main]
    if kernels := fused.kernels(signal, before):
        sent: Tensor = kernels.guided(signal, before)
    else:
        sent = torch.ops.aten.threshold_backward(signal, before, 0).clamp_(min=0)  # 0 where `before` is not above 0
    if ceiling(here.step) < math.inf:
        sent.masked_fill_(before >= ceiling(here.step), 0)
    return here.only(sent)


def _positive(here: Here, signal: Tensor) -> Signals:
    """Only what is positive, whatever the ReLU saw on the way forward."""
    return here.only(signal.relu())


GUIDED: Rules = {**LINEAR, "max": transpose, "relu": _guided, "relu_capped": _guided}
DECONVNET: Rules = {**LINEAR, "max": transpose, "relu": _positive, "relu_capped": _positive}


def on_target(logits: Tensor, targets: Tensor) -> Tensor:
    """(N, classes): 1 at each image's target."""
    return torch.zeros_like(logits).scatter_(1, targets[:, None], 1)


def signals(batch: Batch, rules: Rules, other: str) -> Asking:
    """A signal of 1 from the target's logit back to the images; `other` says what smooth nonlinearities do."""
    one_of("other", other, ("refuse", "gradient"))
    table = rules | OTHER if other == "gradient" else rules  # type: ignore[operator]

    def run(network: Network, rows: slice) -> Tensor:
        forward = network.run(network.laid_out(batch.images[rows]), fold=True)
        found: Tensor = walk(forward, on_target(forward.logits, batch.targets[rows]), table)
        return found

    maps = yield Walk(batch.images, run)
    return Explained(maps, flags={"zero_gradient": vanishes(maps)})
