"""Trains a classifier on images under COSE's operations, with checkpoints along the way, and loads it again."""

from pathlib import Path
from typing import Any

from torch import nn

from saliometer.engine.data import Data
from saliometer.types import Watch


def train_images(
    data: Data, arch: str, out: Path, *, init: str = "random", frozen: bool | None = None, recipe: str = "",
    epochs: int = 0, seed: int = 0, device: str = "cpu", amp: bool | None = None, batch: int = 0, rate: float = 0,
    limit: int = 0, side: int = 0, watch: Watch = lambda share, text: None,
) -> dict[str, Any]:  # fmt: skip
    """Train and return the card; OUT/final.safetensors, OUT/checkpoints/epoch_NN.safetensors and OUT/card.json.

    `frozen` None is as the recipe has it (ours: not), `recipe` '' our own, `epochs`, `batch`, `rate` 0 the recipe's,
    `limit` caps the training images, `side` 0 is the network's usual one; `amp` None takes bfloat16 on a GPU.
    """
    raise NotImplementedError


def load_trained(folder: Path) -> tuple[nn.Module, dict[str, Any]]:
    """The network of a folder that `train_images` wrote, in eval mode, and its card."""
    raise NotImplementedError


def checkpoints_of(folder: Path) -> list[Path]:
    """The files of its checkpoints, epoch by epoch; the last holds the final weights."""
    return sorted((folder / "checkpoints").glob("epoch_*.safetensors"), key=lambda path: int(path.stem.split("_")[1]))
