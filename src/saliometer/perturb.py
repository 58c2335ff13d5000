"""Ways to take evidence out of an image: fills, shared by methods and metrics."""

import torch
from torch import Tensor

from saliometer.registry import one_of
from saliometer.types import Model

FILLS = ("zero", "black", "white")


def filled(model: Model, images: Tensor, fill: str) -> Tensor:
    """Images of one colour: `zero` is 0 in the model's input space, `black` and `white` are pixel values."""
    one_of("fill", fill, FILLS)
    if fill == "zero":
        return torch.zeros_like(images)
    mean, std = (images.new_tensor(values).view(1, -1, 1, 1) for values in (model.mean, model.std))
    return ((float(fill == "white") - mean) / std).expand_as(images)
