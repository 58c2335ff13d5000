"""Which layers are drawn anew, and in which order; what rows call it."""

from collections.abc import Sequence
from dataclasses import dataclass

from saliometer.registry import Spec, one_of

ORDERS = ("top_down", "bottom_up", "independent", "full")
TARGETS = ("fixed", "own")  # the class that was explained first, or what each randomised model predicts
RANDOMISED, ALL = "randomised", "all"


@dataclass(frozen=True)
class Stage:
    """One step of a cascade, or one layer alone."""

    number: int  # from 1 along the order
    layer: str  # the one that is new
    chosen: frozenset[int]  # all that are drawn anew, counted from the images

    def condition(self, order: str, draw: int) -> str:
        params = (("draw", draw), ("layer", self.layer), ("order", order), ("stage", self.number))
        return str(Spec(RANDOMISED, params))


def stages(order: str, layers: Sequence[str]) -> list[Stage]:
    """`top_down` begins at the logits, `bottom_up` at the images; both end where `full` is."""
    one_of("order", order, ORDERS)
    count = len(layers)
    if order == "full":
        return [Stage(1, ALL, frozenset(range(count)))]
    places = range(count - 1, -1, -1) if order == "top_down" else range(count)
    found = []
    for number, place in enumerate(places, 1):
        chosen = {place} if order == "independent" else set(places[:number])
        found.append(Stage(number, layers[place], frozenset(chosen)))
    return found
