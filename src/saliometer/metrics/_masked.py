"""What the metrics that multiply an image by its map share: the target's score before and after."""

from collections.abc import Generator

import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.maps import edges
from saliometer.perturb import filled, masked
from saliometer.registry import one_of
from saliometer.types import Question, Samples, Scores, Subject, unaltered

SPACES = {"raw": "black", "normalised": "zero"}  # what is shown where a map is 0: black pixels, or the mean's grey


def blank(samples: Samples, subject: Subject, space: str) -> Tensor:
    """Images without evidence, in the model's input space."""
    return filled(subject.model, samples.batch.images, SPACES[one_of("space", space, SPACES)])


def own_odds(samples: Samples) -> Generator[Question, Tensor, Tensor]:
    """(N,) float64: the log-odds of the target on the image itself."""
    found = yield Scores(unaltered(samples.batch.images), of="log_odds", key="image")
    return found[0].double()


def blank_odds(samples: Samples, subject: Subject, space: str) -> Generator[Question, Tensor, Tensor]:
    """(N,) float64: the log-odds of the target where all evidence is gone."""
    found = yield Scores(unaltered(blank(samples, subject, space)), of="log_odds", key=f"image blank {space}")
    return found[0].double()


def both_odds(
    maps: Tensor, samples: Samples, subject: Subject, space: str
) -> Generator[Question, Tensor, tuple[Tensor, Tensor]]:
    """(N,) float64 twice: the log-odds of the target on the image, and on the image multiplied by its map.

    From log-odds z come p = sigmoid(z) and 1 - p = sigmoid(-z), both right to the last digit however sure a model is.
    """
    return (yield from both_scores(maps, samples, subject, space, "log_odds"))


def both_scores(
    maps: Tensor, samples: Samples, subject: Subject, space: str, of: str
) -> Generator[Question, Tensor, tuple[Tensor, Tensor]]:
    """The same of any score."""
    images = samples.batch.images
    before = yield Scores(unaltered(images), of=of, key="image")
    after = yield Scores(unaltered(shown(maps, samples, subject, space)), of=of, key=f"masked {space}")
    low, high = edges(maps)
    whole = (low == 1) & (high == 1)  # hides nothing: the score stays to the last bit, whatever batch it came from
    return before[0].double(), torch.where(whole, before[0], after[0]).double()


def shown(maps: Tensor, samples: Samples, subject: Subject, space: str) -> Tensor:
    """The images multiplied by maps (N, H, W), or by several of each, (K, N, H, W)."""
    images = samples.batch.images
    return masked(images, maps.unsqueeze(-3).to(images.dtype), blank(samples, subject, space))


def moved(before: Tensor, after: Tensor) -> Tensor:
    """The change of a probability, log-odds in; exact at both ends, where p or 1 - p is tiny."""
    return torch.where(before > 0, before.neg().sigmoid() - after.neg().sigmoid(), after.sigmoid() - before.sigmoid())


def drop(before: Tensor, after: Tensor) -> Tensor:
    """How much of a probability is lost, 0 where none is: log-odds in, a share out, exact however small p is."""
    lost = (F.logsigmoid(after) - F.logsigmoid(before)).expm1().neg()
    return lost.clamp(min=0).masked_fill(after >= before, 0.0)


def gain(before: Tensor, after: Tensor) -> Tensor:
    """How much of what is missing to certainty is won, 0 where nothing is."""
    return drop(-before, -after)


def rises(before: Tensor, after: Tensor) -> Tensor:
    return (after > before).to(torch.float64)
