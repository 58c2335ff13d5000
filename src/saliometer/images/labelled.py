"""Images to train on, as whole tensors: a training part and a test part with labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled pictures of 8 bits, all of one size."""

    name: str  # what rows and cards call it
    train: Tensor  # (N, 3, H, W) uint8
    train_labels: Tensor  # (N,) int64, 0 to K-1
    test: Tensor  # (M, 3, H, W) uint8
    test_labels: Tensor  # (M,) int64
    classes: tuple[str, ...]  # K names
    notes: Sequence[str] = field(default=())  # what was done to them, in words

    @cached_property
    def sha256(self) -> str:
        """Of all pixels and labels."""
        digest = sha256()
        for part in (self.train, self.train_labels, self.test, self.test_labels):
            digest.update(f"{tuple(part.shape)}".encode())
            digest.update(part.cpu().contiguous().numpy().data)
        return digest.hexdigest()
