"""How fine maps are, on noise whose autocorrelation is known."""

import math

import pytest
import torch

from saliometer.cose.controls import smooth_noise
from saliometer.cose.grain import grain

PIXELS = torch.zeros(20, 3, 96, 96)
SEEDS = torch.arange(20)


@pytest.mark.parametrize("sigma", [1.5, 2.0, 4.0])
def test_noise_under_a_gaussian_has_the_grain_of_its_sigma(sigma):
    """Its autocorrelation is exp(-d^2 / (4 sigma^2)), 1/2 at 2 sigma sqrt(ln 2)."""
    found = float(grain(smooth_noise(PIXELS, SEEDS, sigma)).mean())
    assert found == pytest.approx(2 * sigma * math.sqrt(math.log(2)), rel=0.06)


def test_white_noise_has_half_a_pixel():
    assert float(grain(smooth_noise(PIXELS, SEEDS, 0.0)).mean()) == pytest.approx(0.5, abs=0.02)


def test_a_wave_is_known_by_hand():
    """cos(x / 8): in common 1/2 at a sixth of its length; down the columns nothing ever changes."""
    across = torch.cos(2 * math.pi * torch.arange(96.0) / 48).expand(96, 96)[None]
    joined = grain(across)
    assert 8 < float(joined) < 20  # the mean of cos(d / 8) and 1 is 1/2 at a quarter
    assert float(joined) == pytest.approx(12, abs=1.5)


def test_levels_and_place_do_not_matter():
    maps = smooth_noise(PIXELS[:4], SEEDS[:4], 2.0)
    torch.testing.assert_close(grain(maps), grain(3 * maps - 7), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(grain(maps), grain(maps.flip(1, 2).mT))
    torch.testing.assert_close(grain(maps)[2:], grain(maps[2:]))


def test_a_flat_map_has_none_and_a_slope_as_much_as_there_can_be():
    flat = torch.full((1, 16, 16), 0.3)
    assert math.isnan(float(grain(flat)))
    assert math.isnan(float(grain(0 * flat)))
    assert math.isnan(float(grain(flat / 0 * 0)))  # NaN everywhere
    checker = (torch.arange(16)[:, None] + torch.arange(16)) % 2.0
    assert float(grain(checker[None])) == pytest.approx(0.25, abs=0.03)  # from 1 to -1 in one pixel
    assert float(grain(torch.arange(16.0).expand(16, 16)[None])) <= 8
