"""The battery in one call, for tests of its metrics: toy models, images and samples."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.battery import Cost, Measure, Shelf, measured
from saliometer.engine.score import Failure
from saliometer.types import PRIMARY, Batch, Model, Samples
from toys import CPU, asked, model_of, seeds_of


class Odds(nn.Module):
    """Two classes; class 0 has the probability that a formula of the images (N, C, H, W) gives."""

    def __init__(self, probability: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, images: Tensor) -> Tensor:
        share = self.probability(images)
        return torch.stack((share.log(), (1 - share).log()), 1)


def photos(images: Tensor, targets: Tensor | int = 0, masks: Tensor | None = None, first: int = 100) -> Samples:
    """Images without known reasoning, as an audit sees them; with masks (N, H, W) each has one object."""
    count, _, height, width = images.shape
    wanted = torch.full((count,), targets) if isinstance(targets, int) else targets
    objects = torch.zeros(count, 0, height, width, dtype=torch.bool) if masks is None else masks[:, None].bool()
    roles = torch.full((count, objects.shape[1]), PRIMARY, dtype=torch.int8)
    boxes = torch.zeros(count, objects.shape[1], 4, dtype=torch.int64)
    ids = tuple(f"image-{i}" for i in range(count))
    return Samples(Batch(images, wanted, seeds_of(count, first)), ids, wanted, objects, boxes, roles, ("",) * count)


def judged(
    text: str, model: Model | nn.Module, maps: Tensor, samples: Samples, *, method: str = "gradient", size: int = 0,
    **given: str,
) -> tuple[dict[str, Tensor], list[str], Cost]:  # fmt: skip
    """metric or metric.part -> (N,); the notes; the cost. Maps are (N, C, H, W) or (N, H, W), a failure is raised."""
    whole = model if isinstance(model, Model) else model_of(model)
    maps = maps[:, None] if maps.ndim == 3 else maps
    shelf = Shelf(Answers(whole, CPU, size))
    ((_, found, cost),) = measured([Measure.parse(text, **given)], asked(method), maps, samples, shelf)
    if isinstance(found, Failure):
        raise AssertionError(found.traceback)
    return {one.metric: one.values for one in found}, found[0].notes, cost


def value(text: str, model: Model | nn.Module, maps: Tensor, samples: Samples, **given: str) -> Tensor:
    """(N,): the metric itself."""
    return judged(text, model, maps, samples, **given)[0][text.split("(")[0]]  # type: ignore[arg-type]


def all_costs(
    texts: Sequence[str], model: Model, maps: Tensor, samples: Samples, method: str = "gradient"
) -> list[Cost]:
    """What each of several metrics takes when they are run together."""
    shelf = Shelf(Answers(model, CPU))
    return [cost for *_, cost in measured([Measure.parse(t) for t in texts], asked(method), maps, samples, shelf)]
