"""What sufficiency and necessity share: whether the model's decision stays on images that keep more, or less."""

from collections.abc import Generator

import torch
from torch import Tensor

from saliometer.metrics._masked import shown
from saliometer.seeds import uniforms
from saliometer.types import Logits, Question, Samples, Subject, unaltered

OTHER = "the explained class is not the predicted one"


def decided(samples: Samples) -> Generator[Question, Tensor, Tensor]:
    """(N,) int64: the class that is predicted on the image."""
    found = yield Logits(unaltered(samples.batch.images), key="image")
    return found[0].argmax(1)


def kept_by_more(
    maps: Tensor, samples: Samples, subject: Subject, decision: Tensor, draws: int
) -> Generator[Question, Tensor, tuple[Tensor, Tensor]]:
    """(N,) bool and (draws, N) bool: whether the decision stays on x m, and on x m' with m' = m + u (1 - m)."""

    def variants(ks: range) -> Tensor:
        drawn = range(max(1, ks.start), ks.stop)
        more = maps + lots("sufficiency", drawn, maps, samples) * (1 - maps)
        return shown(torch.cat((maps[None], more)) if ks.start == 0 else more, samples, subject, "raw")

    found = yield Logits(variants, draws + 1, key="keeping more")
    kept = found.argmax(2) == decision
    return kept[0], kept[1:]


def kept_by_less(
    maps: Tensor, samples: Samples, subject: Subject, decision: Tensor, draws: int
) -> Generator[Question, Tensor, Tensor]:
    """(draws, N) bool: whether the decision stays on x m' with m' = u m."""

    def variants(ks: range) -> Tensor:
        return shown(maps * lots("necessity", ks, maps, samples), samples, subject, "raw")

    found = yield Logits(variants, draws, key="keeping less")
    return found.argmax(2) == decision


def lots(purpose: str, draws: range, maps: Tensor, samples: Samples) -> Tensor:
    """(draws, N, H, W) in [0, 1): one number for each pixel, whatever the method."""
    return uniforms(samples.batch.seeds, [f"{purpose} {k}" for k in draws], *maps.shape[1:]).to(maps.dtype)


def checked_draws(draws: int) -> int:
    if draws < 1:
        raise ValueError(f"draws={draws}: wanted 1 or more")
    return draws
