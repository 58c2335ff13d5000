"""Networks whose weights are written down: two shapes are found by matched filters and joined by a logical rule.

conv1 and relu1 leave 1 of a white pixel and 0 of any whose channels sum to 2 or less. conv2 counts a shape's pixels
under it and relu2 leaves 1 where all are white, 0 where any is missing. The sum over places says whether a shape is
there (0 or 1), and of their number s the two hidden units are min(s, 1) + max(s - 1, 0) and max(s - 1, 0).
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn

from saliometer.registry import one_of

RULES = {"and": (0.0, 1.0), "or": (1.0, -1.0), "xor": (1.0, -2.0)}  # of the hidden units, 1 if the rule holds, else 0
MARGIN = 4.0  # the logits are this and its negative


def logic(rule: str, shapes: Tensor, side: int = 64) -> nn.Module:
    """A network of two classes; `shapes` (2, h, w) of 0 and 1, h and w odd, are found in images (N, 3, side, side)."""
    weights = torch.tensor(RULES[one_of("rule", rule, RULES)])
    count, height, width = shapes.shape
    layers = OrderedDict[str, nn.Module](
        conv1=nn.Conv2d(3, 1, 1),
        relu1=nn.ReLU(),
        conv2=nn.Conv2d(1, count, (height, width), padding=(height // 2, width // 2)),
        relu2=nn.ReLU(),
        pool=nn.AvgPool2d(side),
        flatten=nn.Flatten(),
        hidden=nn.Linear(count, 2),
        relu3=nn.ReLU(),
        output=nn.Linear(2, 2),
    )
    pixels = shapes.sum((1, 2))
    output = 2 * MARGIN * torch.stack((-weights, weights))
    _set(layers["conv1"], torch.ones(1, 3, 1, 1), torch.tensor([-2.0]))
    _set(layers["conv2"], 2 * shapes[:, None], 1 - 2 * pixels)  # all but one pixel give -1
    _set(layers["hidden"], torch.full((2, count), float(side * side)), torch.tensor([0.0, -1.0]))
    _set(layers["output"], output, torch.tensor([MARGIN, -MARGIN]))
    return nn.Sequential(layers).eval().requires_grad_(False)


def _set(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    layer.load_state_dict({"weight": weight, "bias": bias})
