"""Average drop: known answers."""

import pytest
import torch

from battery_toys import Odds, photos, value
from toys import model_of

IMAGE = torch.tensor([[[[0.8, 0.5], [0.5, 0.5]]]])
HALF = torch.tensor([[[0.5, 1.0], [0.0, 0.2]]])  # the first pixel is shown by half
FIRST = Odds(lambda x: x[:, 0, 0, 0])  # its probability is the first pixel
OTHER = Odds(lambda x: 1 - x[:, 0, 0, 0])


def test_the_share_of_the_probability_that_is_lost():
    assert value("average_drop", FIRST, HALF, photos(IMAGE)).item() == pytest.approx(0.5)  # 0.8 to 0.4


def test_nothing_is_lost_where_the_probability_rises():
    assert value("average_drop", OTHER, HALF, photos(IMAGE)).item() == 0.0


def test_the_target_is_the_class_that_was_explained():
    assert value("average_drop", FIRST, HALF, photos(IMAGE, 1)).item() == 0.0
    assert value("average_drop", OTHER, HALF, photos(IMAGE, 1)).item() == pytest.approx(0.5)


def test_black_and_grey_are_different_blanks():
    """Pixels of 0.8 with mean 0.4: half of it is 0.4 in pixels, but 0.6 half way to the mean."""
    net = Odds(lambda x: x[:, 0, 0, 0] * 0.2 + 0.4)
    model, image = model_of(net, mean=(0.4,), std=(0.2,)), (IMAGE - 0.4) / 0.2
    assert value("average_drop", model, HALF, photos(image)).item() == pytest.approx(1 - 0.4 / 0.8, rel=1e-5)
    grey = value("average_drop(space=normalised)", model, HALF, photos(image))
    assert grey.item() == pytest.approx(1 - 0.6 / 0.8, rel=1e-5)


def test_a_map_of_one_pixel_that_does_not_matter_loses_all():
    single = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
    assert value("average_drop", FIRST, single, photos(IMAGE)).item() == 1.0
