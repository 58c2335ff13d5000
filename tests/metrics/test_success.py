"""Success and failure: PAFL above one half, SAFL above PAFL; at the line neither holds."""

import pytest
import torch

from saliometer.metrics.failure import failure
from saliometer.metrics.success import success
from saliometer.types import PRIMARY, SECONDARY
from toys import samples_of

SAMPLES = samples_of([[[0, 1, 0, 1], [3, 4, 3, 4]]], [[PRIMARY, SECONDARY]], side=4)


@pytest.mark.parametrize(
    ("primary", "secondary", "rest", "succeeds", "fails"),
    [
        (6, 1, 1, 1, 0),
        (4, 3, 1, 0, 0),  # exactly one half is no success
        (3, 3, 0, 0, 0),  # neither is above the other
        (3, 4, 1, 0, 1),
        (0, 1, 7, 0, 1),
        (5, 0, 5, 0, 0),
        (5, 0, 4, 1, 0),
    ],
)
def test_the_lines_are_strict(primary, secondary, rest, succeeds, fails):
    maps = torch.zeros(1, 4, 4, dtype=torch.float64)
    maps[0, 0, 0], maps[0, 3, 3], maps[0, 1, 2] = primary, secondary, rest
    for definition in ("clean", "clean_positive", "authors"):
        assert success(maps, SAMPLES, definition=definition).item() == succeeds
        assert failure(maps, SAMPLES, definition=definition).item() == fails
