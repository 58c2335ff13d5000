"""Methods in double precision: the engine hands out maps as float32, which hides an error of 1e-12."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, drive
from saliometer.types import Batch, Explained, Model
from toys import CPU, asked, model_of, small_cnn


def raw(model: Model, batch: Batch, text: str, *, size: int = 0) -> Explained:
    """All that a method says, in the precision it worked in, or its failure raised."""
    method = asked(text)
    found = drive({text: lambda: method.start(model, batch)}, Answers(model, CPU, size), batch.targets)[text]
    if isinstance(found, Failure):
        raise AssertionError(found.traceback)
    return found if isinstance(found, Explained) else Explained(found)


def double(batch: Batch) -> Batch:
    references = None if batch.references is None else batch.references.double()
    return replace(batch, images=batch.images.double(), references=references)


def smooth_cnn() -> Model:
    """The small network with tanh in place of ReLU, in double precision: no kinks."""
    net = small_cnn().double()
    net[1], net[3] = nn.Tanh(), nn.Tanh()
    return model_of(net)


def linear(weights: Tensor) -> Model:
    """One score, linear in the values of the image, with a bias of 2; the other class has the opposite score."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(weights.numel(), 2)).to(weights.dtype)
    with torch.no_grad():
        net[1].weight.copy_(torch.stack((weights.flatten(), -weights.flatten())))
        net[1].bias.copy_(torch.tensor([2.0, -2.0]))
    return model_of(net)


def scores(model: Model, images: Tensor, targets: Tensor) -> Tensor:
    """(N,): the logit of each image's target."""
    with torch.no_grad():
        return model.logits(images).gather(1, targets[:, None])[:, 0]
