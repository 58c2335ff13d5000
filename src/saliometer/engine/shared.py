"""Scores of several classes out of the same passes, for audits that explain other targets of the same images."""

import torch
from torch import Tensor


class Shared:
    """The classes that will be asked for on one chunk of images, and the scores that were found for all of them."""

    def __init__(self, classes: Tensor) -> None:
        self.classes = classes  # (targets, N)
        self._kept: dict[str, Tensor] = {}  # what was asked, in words -> (targets, ...)

    def place(self, targets: Tensor) -> int | None:
        """Which of the rows these targets are."""
        same = [place for place, row in enumerate(self.classes) if torch.equal(row, targets)]
        return same[0] if same else None

    def get(self, words: str, place: int) -> Tensor | None:
        return self._kept[words][place].clone() if words in self._kept else None

    def keep(self, words: str, scores: Tensor) -> None:
        self._kept[words] = scores


class Memory:
    """What audits of the same images keep for each other, chunk by chunk."""

    def __init__(self) -> None:
        self._chunks: dict[str, Shared] = {}

    def at(self, place: str, classes: Tensor) -> Shared:
        known = self._chunks.get(place)
        if known is None or any(known.place(row) is None for row in classes):
            known = self._chunks[place] = Shared(classes)
        return known
