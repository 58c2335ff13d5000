"""Toys whose answers are worked out by hand: the fixtures of methods.md 1.7, spies, scenes and rows."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from saliometer import registry, results
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, Method, attributions
from saliometer.registry import Spec
from saliometer.types import ABSENT, Batch, Explained, Model, Samples

CPU = torch.device("cpu")
REFERENCES = 100  # the fewest that every method takes


# Models


class Formula(nn.Module):
    """The one score of each image as a formula of its flattened pixels; class 1 has the opposite score."""

    def __init__(self, formula: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.formula = formula

    def forward(self, images: Tensor) -> Tensor:
        score = self.formula(images.flatten(1))
        return torch.stack((score, -score), 1)


def fixture_l() -> nn.Module:
    """f = 3 x1 - 2 x2 + 1."""
    return Formula(lambda x: 3 * x[:, 0] - 2 * x[:, 1] + 1)


def fixture_g() -> nn.Module:
    """y = (1, 2, -3) . ReLU(x1 + x2, x1 - x2, x2)."""
    return Formula(lambda x: (x[:, 0] + x[:, 1]).relu() + 2 * (x[:, 0] - x[:, 1]).relu() - 3 * x[:, 1].relu())


def fixture_s() -> nn.Module:
    """y = 1 - ReLU(1 - x1 - x2), flat beyond x1 + x2 = 1."""
    return Formula(lambda x: 1 - (1 - x[:, 0] - x[:, 1]).relu())


def power(exponent: int) -> nn.Module:
    """The sum of every pixel's power."""
    return Formula(lambda x: (x**exponent).sum(1))


class CamHead(nn.Module):
    """Feature maps handed over as the image itself, `features`, and a linear head on them."""

    def __init__(self, weights: Tensor, pooled: bool) -> None:
        super().__init__()
        self.features = nn.Identity()
        self.weights, self.pooled = weights, pooled

    def forward(self, images: Tensor) -> Tensor:
        maps = self.features(images)
        score = (maps.mean((2, 3)) * self.weights).sum(1) if self.pooled else (maps * self.weights).sum((1, 2, 3))
        return torch.stack((score, -score), 1)


class Spy(nn.Module):
    """Passes on to a network and keeps the size of every batch it is fed."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net
        self.sizes: list[int] = []

    def forward(self, images: Tensor) -> Tensor:
        self.sizes.append(len(images))
        return self.net(images)


class Cramped(Spy):
    """Runs out of memory, in the device's words, when a batch has more than `most` images."""

    def __init__(self, net: nn.Module, most: int, words: str = "CUDA out of memory. Tried to allocate") -> None:
        super().__init__(net)
        self.most, self.words = most, words

    def forward(self, images: Tensor) -> Tensor:
        if len(images) > self.most:
            raise RuntimeError(self.words)
        return super().forward(images)


class Mean(nn.Module):
    """The mean of each feature map."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean((2, 3))


def small_cnn(
    classes: int = 3, channels: int = 3, bias: bool = True, seed: int = 0, pooled: bool = False
) -> nn.Sequential:
    """A convolution, a ReLU, a smaller convolution, a ReLU and a linear layer, for 8x8 images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3, bias=bias),
            nn.ReLU(),
            nn.Conv2d(4, 5, 3, bias=bias),
            nn.ReLU(),
            Mean() if pooled else nn.Flatten(),
            nn.Linear(5 if pooled else 5 * 4 * 4, classes, bias=bias),
        )


def model_of(net: nn.Module, cam_layer: str = "3", **scale: tuple[float, ...]) -> Model:
    """A network as the engine takes it: frozen, in eval mode."""
    return Model("toy", net.eval().requires_grad_(False), cam_layer, "toy", **scale)


# Batches and samples


def seeds_of(count: int, first: int = 100) -> Tensor:
    return torch.arange(first, first + count)


def flat(*pixels: Sequence[float]) -> Batch:
    """One image of shape (1, 1, n) for each list of pixels, explained for class 0."""
    images = torch.tensor(pixels, dtype=torch.float32)[:, None, None, :]
    return Batch(images, torch.zeros(len(images), dtype=torch.int64), seeds_of(len(images)))


def batch_of(images: Tensor, target: int = 0) -> Batch:
    return Batch(images, torch.full((len(images),), target), seeds_of(len(images)))


def noise_batch(count: int = 5, channels: int = 3, side: int = 8, classes: int = 3) -> Batch:
    """Images of noise with targets that go round the classes."""
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(count, channels, side, side, generator=generator)
    references = torch.rand(REFERENCES, channels, side, side, generator=generator)
    return Batch(images, torch.arange(count) % classes, seeds_of(count), references)


def samples_of(
    boxes: Sequence[Sequence[Sequence[int]]], roles: Sequence[Sequence[int]], side: int = 8, ink: Tensor | None = None
) -> Samples:
    """Black images with the given boxes (row, row end, column, column end) and roles; ink fills the boxes."""
    count, parts = len(boxes), len(boxes[0])
    filled = torch.zeros(count, parts, side, side, dtype=torch.bool)
    for i, row in enumerate(boxes):
        for k, (top, bottom, left, right) in enumerate(row):
            filled[i, k, top:bottom, left:right] = roles[i][k] != ABSENT
    batch = batch_of(torch.zeros(count, 1, side, side))
    ids = tuple(f"test-{i}" for i in range(count))
    shown = filled if ink is None else ink
    return Samples(
        batch, ids, batch.targets, shown, torch.tensor(boxes), torch.tensor(roles, dtype=torch.int8), ("1",) * count
    )


# The engine, in one call


def asked(text: str) -> Method:
    """A registered method as the benchmark would hold it."""
    spec = Spec.parse(text)
    return Method(str(spec), registry.methods[spec.name], spec)


def explain(model: Model, batch: Batch, text: str, *, size: int = 0, truth: Tensor | None = None) -> Tensor:
    """(N, C, H, W): a method's attribution, or its failure raised."""
    return explained(model, batch, text, size=size, truth=truth).maps


def explained(model: Model, batch: Batch, text: str, *, size: int = 0, truth: Tensor | None = None) -> Explained:
    """All that a method says, or its failure raised."""
    method = asked(text)
    found = attributions([method], Answers(model, CPU, size), batch, truth)[method.label]
    if isinstance(found, Failure):
        raise AssertionError(found.traceback)
    return found


def quick(name: str) -> str:
    """A method's Spec with the parameters that let it run in a blink."""
    return str(Spec(name, tuple(sorted(registry.methods[name].facts.quick.items()))))


# Rows


def rows(
    values: dict[str, dict[tuple[str, str], Sequence[float]]], metric: str = "pafl", definition: str = "clean",
    notes: Sequence[str] = (), model: str = "",
) -> pa.Table:  # fmt: skip
    """method -> (setting, bucket) -> one value per image, as the table a run holds."""
    blocks = []
    for method, cells in values.items():
        for (setting, bucket), numbers in cells.items():
            constant = dict.fromkeys(results.COLUMNS, "") | {
                "task": "textbox", "setting": setting, "method": method, "metric": metric, "definition": definition,
                "model": model,
            }  # fmt: skip
            ids = [f"test-{bucket}-{i}" for i in range(len(numbers))]
            words = list(notes) or [""] * len(numbers)
            blocks.append(
                results.block(constant, ids, [bucket] * len(numbers), np.array(numbers, dtype=np.float64), words)
            )
    return pa.concat_tables(blocks).unify_dictionaries()
