"""What methods that optimise share: Adam's rule and the slope of a small expression, for a whole batch at once."""

from collections.abc import Callable

import torch
from torch import Tensor


class Adam:
    """One tensor's steps downhill, each value on its own (Kingma and Ba, 2015), as torch.optim.Adam takes them."""

    def __init__(self, rate: float) -> None:
        self.rate, self.steps = rate, 0
        self.mean: Tensor | float = 0.0
        self.square: Tensor | float = 0.0

    def __call__(self, values: Tensor, slopes: Tensor) -> Tensor:
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * slopes
        self.square = 0.999 * self.square + 0.001 * slopes.square()
        mean, square = self.mean / (1 - 0.9**self.steps), self.square / (1 - 0.999**self.steps)
        return values - self.rate * mean / (square.sqrt() + 1e-8)


def slopes_of(objective: Callable[[Tensor, Tensor], Tensor], values: Tensor, given: Tensor) -> Tensor:
    """The gradient of the number `objective(values, given)` by the values, whatever mode the caller is in."""
    with torch.inference_mode(False), torch.enable_grad():
        values = values.clone().requires_grad_()
        return torch.autograd.grad(objective(values, given.clone()), values)[0]
