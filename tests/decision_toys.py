"""A model that looks at one pixel, for tests of sufficiency and necessity."""

import torch
from torch import Tensor, nn

IMAGES = torch.ones(3, 3, 4, 4)


class Threshold(nn.Module):
    """Class 1 of three if and only if the first pixel is at least t."""

    def __init__(self, t: float) -> None:
        super().__init__()
        self.t = t

    def forward(self, images: Tensor) -> Tensor:
        yes = (images[:, 0, 0, 0] >= self.t).float()
        return torch.stack((1 - yes, yes, torch.full_like(yes, -5)), 1)


def maps(*firsts: float) -> Tensor:
    """Maps whose first pixel is given; another is 1 and the rest 0."""
    made = torch.zeros(len(firsts), 4, 4)
    made[:, 3, 3] = 1.0
    made[:, 0, 0] = torch.tensor(firsts)
    return made
