"""What is chosen when a network is trained."""

from dataclasses import dataclass

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LRScheduler

COSINE, CONSTANT = "cosine", "constant"


@dataclass(frozen=True)
class Recipe:
    epochs: int
    batch: int = 512
    rate: float = 1e-3
    loss: str = "cross_entropy"
    schedule: str = COSINE  # the rate falls to 0 along one, or is constant

    def rates(self, optimiser: Optimizer, count: int) -> LRScheduler:
        """The rate of every step, for so many images an epoch."""
        if self.schedule == CONSTANT:
            return ConstantLR(optimiser, factor=1.0)
        return CosineAnnealingLR(optimiser, self.epochs * -(-count // self.batch))
