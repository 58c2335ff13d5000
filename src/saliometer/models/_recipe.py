"""What is chosen when a network is trained."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    epochs: int
    batch: int = 512
    rate: float = 1e-3
    loss: str = "cross_entropy"
