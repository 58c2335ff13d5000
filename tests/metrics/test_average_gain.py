"""Average gain: known answers."""

import pytest
import torch

from battery_toys import Odds, photos, value

IMAGE = torch.tensor([[[[0.8, 0.5], [0.5, 0.5]]]])
HALF = torch.tensor([[[0.5, 1.0], [0.0, 0.2]]])


def test_the_share_of_what_is_missing_to_certainty_that_is_won():
    gain = value("average_gain", Odds(lambda x: 1 - x[:, 0, 0, 0]), HALF, photos(IMAGE))
    assert gain.item() == pytest.approx((0.6 - 0.2) / (1 - 0.2), rel=1e-5)


def test_nothing_is_won_where_the_probability_falls():
    assert value("average_gain", Odds(lambda x: x[:, 0, 0, 0]), HALF, photos(IMAGE)).item() == 0.0


def test_a_certain_model_gains_nothing():
    assert value("average_gain", Odds(lambda x: torch.ones(len(x))), HALF, photos(IMAGE)).item() == 0.0
