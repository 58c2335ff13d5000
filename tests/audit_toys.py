"""What tests of the audit share: a model whose scores are worked out by hand, a small network, methods of one's own."""

import inspect
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from saliometer import registry
from toys import small_cnn

SIDE = 8


class Filled(nn.Module):
    """Class 0 has the probability 0.01 + 0.98 times the mean value of the pixels."""

    def forward(self, images: Tensor) -> Tensor:
        share = 0.01 + 0.98 * images.mean((1, 2, 3)).clamp(0, 1)
        return torch.stack((share.log(), (1 - share).log()), 1)


def white(count: int = 3) -> Tensor:
    return torch.ones(count, 3, SIDE, SIDE)


def noise(count: int = 5) -> Tensor:
    return torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(3))


def network() -> nn.Module:
    return small_cnn().eval()


def half(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The left half."""
    maps = torch.zeros(len(images), *images.shape[2:])
    maps[..., : images.shape[3] // 2] = 1
    return maps


def values(outcome, metric: str, method: str) -> list[float]:
    """In the order of the images; without the rows that say what it cost."""
    return [r["value"] for r in outcome.rows.to_pylist() if r["metric"] == metric and r["method"] == method]


def measured(outcome) -> list[dict]:
    """All rows but those of costs, whose seconds differ."""
    return [row for row in outcome.run.rows().to_pylist() if not row["metric"].startswith("cost.")]


def same(one: list[dict], other: list[dict], tolerance: float = 0.0) -> None:
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        assert {k: v for k, v in a.items() if k != "value"} == {k: v for k, v in b.items() if k != "value"}
        if not (math.isnan(a["value"]) and math.isnan(b["value"])):
            assert math.isclose(a["value"], b["value"], rel_tol=tolerance, abs_tol=tolerance), (a, b)


@contextmanager
def failing(name: str = "deletion") -> Iterator[None]:
    """A metric of ours that breaks when it is run, not by its parameters, which are tried before."""
    entry = registry.metrics[name]

    def broken(maps: Tensor, samples: object, subject: object, **params: object) -> Tensor:
        raise RuntimeError(f"{name} broke with {params}")

    broken.__signature__ = inspect.signature(entry.function)  # type: ignore[attr-defined]
    broken.__doc__ = entry.function.__doc__
    registry.metrics._entries[name] = replace(entry, function=broken)
    try:
        yield
    finally:
        registry.metrics._entries[name] = entry
