"""What objects look like and where they may lie: shapes, colours and places, each a small function or value.

A shape is (h, w) in [0, 1], its opacity. A place is a function (draws, room) -> corners: `draws` (N, 2) are uniform in
[0, 1), `room` says how many rows and columns the top left corner can start at, and `corners` (N, 2) are whole numbers
below that. One of your own is used like these.
"""

from collections.abc import Callable

import torch
from torch import Tensor

WHITE, RED, GREEN, BLUE = (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
YELLOW, GREY = (1.0, 1.0, 0.0), (0.5, 0.5, 0.5)
Colour = tuple[float, float, float]
Place = Callable[[Tensor, tuple[int, int]], Tensor]


def square(side: int) -> Tensor:
    return torch.ones(side, side)


def disc(side: int) -> Tensor:
    """A filled circle of that diameter."""
    away = torch.arange(side) - (side - 1) / 2
    return (away[:, None].square() + away.square() <= (side / 2) ** 2).float()


def ring(side: int, thick: int = 2) -> Tensor:
    """A hollow square."""
    shape = torch.ones(side, side)
    shape[thick:-thick, thick:-thick] = 0
    return shape


def cross(side: int, thick: int = 3) -> Tensor:
    """An upright cross."""
    away = (torch.arange(side) - (side - 1) / 2).abs() < thick / 2
    return (away[:, None] | away).float()


def triangle(side: int) -> Tensor:
    """A right angle at the bottom left."""
    return torch.ones(side, side).tril()


def anywhere(draws: Tensor, room: tuple[int, int]) -> Tensor:
    return (draws * draws.new_tensor(room)).long()


def left(draws: Tensor, room: tuple[int, int]) -> Tensor:
    """In the left half."""
    return anywhere(draws, (room[0], room[1] // 2))


def right(draws: Tensor, room: tuple[int, int]) -> Tensor:
    """In the right half."""
    half = room[1] // 2
    return anywhere(draws, (room[0], room[1] - half)) + torch.tensor([0, half], device=draws.device)
