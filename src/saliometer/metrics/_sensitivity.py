"""What max- and avg-sensitivity share: how far a method's maps move when its images are shaken (Yeh et al., 2019)."""

from collections.abc import Generator

from torch import Tensor

from saliometer.metrics._distances import DISTANCES, distance
from saliometer.metrics._draws import drawn
from saliometer.registry import one_of
from saliometer.seeds import uniform
from saliometer.types import Maps, Question, Samples, Subject

SPACES = ("normalised", "pixel")


def moved(
    maps: Tensor, samples: Samples, subject: Subject, radius: float, space: str, draws: int, measure: str
) -> Generator[Question, Tensor, tuple[Tensor, dict[str, Tensor]]]:
    """(draws, N) float64: the distance to the map of each shaken image; and where there is none, with the reason."""
    one_of("space", space, SPACES)
    one_of("distance", measure, DISTANCES)
    if radius < 0 or draws < 1:
        raise ValueError(f"sensitivity: radius={radius}, draws={draws}; wanted radius of 0 or more, draws of 1 or more")
    images, seeds, model = samples.batch.images, samples.batch.seeds, subject.model
    reach = radius / (model.channels(images, model.std) if space == "pixel" else 1.0)

    def shaken(ks: range) -> Tensor:
        noise = uniform(drawn(seeds, "sensitivity", ks), "noise", *images.shape[1:]).to(images.dtype)
        return images + (noise.mul_(2).sub_(1) * reach).view(len(ks), *images.shape)

    def take(others: Tensor) -> Tensor:
        return distance(measure, maps, others)

    found = yield Maps(shaken, draws, take, key=f"sensitivity {radius} {space} {measure}")
    empty = (maps == 0).flatten(1).all(1) & (measure != "absolute")
    undefined = ~found.isfinite().all(0) & ~empty
    return found, {"nothing is relative to a map of zeros": empty, "no distance to some map explained anew": undefined}
