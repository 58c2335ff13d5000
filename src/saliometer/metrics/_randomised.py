"""What the randomisation tests share: two stacks of attributions, and how alike they are under a name."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from saliometer.registry import one_of
from saliometer.sanity.layers import BY
from saliometer.sanity.plan import ORDERS, TARGETS
from saliometer.sanity.randomise import NORMS
from saliometer.sanity.similarity import SCALINGS, similarity, stage_of
from saliometer.types import Scored

MULTIPLIERS = ("keep", "drop", "divide")
NAMED = {"order": ORDERS, "by": BY, "norms": NORMS, "target": TARGETS, "multiplier": MULTIPLIERS, "scaling": SCALINGS}
PARTS = {"full": "lower", "spread": ""}
DEGENERATE = ("undefined, it has no similarity", "undefined, it has no similarity", "1 if it never moves")


def checked(name: str, **params: Any) -> None:
    """Raise for words that mean nothing, and counts below one."""
    for key, value in params.items():
        if key in NAMED:
            one_of(key, value, NAMED[key])
        elif isinstance(value, int) and value < 1:
            raise ValueError(f"{name}: {key}={value}, wanted 1 or more")


def stage(params: Mapping[str, Any]) -> str:
    """How maps are read, in a row's definition."""
    return stage_of(params["similarity"], params["scaling"])


def alike(maps: Tensor, others: Tensor, valid: Tensor | None, kind: str, scaling: str) -> Scored:
    """One value for each pair of attributions (N, C, H, W)."""
    measure = similarity(kind, maps.shape, scaling, valid)
    return scored(measure.compare(measure.read(maps), measure.read(others)), maps, others, measure.why)


def scored(values: Tensor, maps: Tensor, others: Tensor, why: str) -> Scored:
    broken = ~(maps.flatten(1).isfinite().all(1) & others.flatten(1).isfinite().all(1))
    return Scored(values, invalid={"nan map": broken, why: values.isnan() & ~broken})
