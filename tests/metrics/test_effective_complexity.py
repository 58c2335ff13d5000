"""Effective complexity: closed forms, and the fewest pixels against a search over all of them."""

import pytest
import torch

from battery_toys import Odds, judged, photos, value
from toys import small_cnn

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(5, 3, 8, 8, generator=GENERATOR) + 0.1
MAPS = torch.rand(5, 8, 8, generator=GENERATOR)
NGUYEN = "effective_complexity(definition=nguyen)"


@pytest.mark.parametrize("count", [1, 5, 40])
def test_equal_values_count_themselves(count):
    maps = torch.zeros(1, 64)
    maps[:, :count] = 3.0
    assert value("effective_complexity", small_cnn(), maps.view(1, 8, 8), photos(IMAGES[:1])).item() == count


def test_fake_cam_and_noise_lack_one_pixel_and_ones_none():
    fake = torch.ones(1, 8, 8)
    fake[0, 0, 0] = 0
    assert value("effective_complexity", small_cnn(), fake, photos(IMAGES[:1])).item() == 63
    assert value("effective_complexity", small_cnn(), MAPS, photos(IMAGES)).tolist() == [63] * 5
    for filling in (1.0, 0.3, -2.0):
        ones = value("effective_complexity", small_cnn(), torch.full((1, 8, 8), filling), photos(IMAGES[:1]))
        assert ones.item() == 64


def test_a_map_of_zeros_is_invalid_not_the_best():
    found, notes, _ = judged("effective_complexity", small_cnn(), torch.zeros(1, 8, 8), photos(IMAGES[:1]))
    assert found["effective_complexity"].isnan().all()
    assert "marks no pixel" in notes[0]


def test_a_broken_map_is_invalid_not_the_best_and_a_large_neighbour_does_no_harm():
    maps = MAPS.clone()
    maps[0, 0, 0] = torch.nan
    maps[1] *= 1e6
    found, notes, cost = judged("effective_complexity", small_cnn(), maps, photos(IMAGES))
    assert found["effective_complexity"][0].isnan()
    assert found["effective_complexity"][1:].tolist() == [63] * 4
    assert notes[0] == "nan map"
    assert cost.passes == 0


def test_epsilon_is_of_the_scaled_map():
    maps = torch.linspace(0, 1000, 64).view(1, 8, 8)
    assert value("effective_complexity(epsilon=0.5)", small_cnn(), maps, photos(IMAGES[:1])).item() == 32
    maps = torch.arange(65.0)[1:].view(1, 8, 8) - 1  # 0 to 63, in shares of 63
    maps[0, 0, 0], maps[0, 0, 1] = 0, 31.5
    assert value("effective_complexity(epsilon=0.5)", small_cnn(), maps, photos(IMAGES[:1])).item() == 32  # not at it


@pytest.mark.parametrize("wanted", [0, 1, 2, 31, 32, 33, 63, 64])
def test_the_fewest_pixels_that_keep_p(wanted):
    """p is 0.2 until `wanted` pixels are shown, then 0.9."""
    net = Odds(lambda x: 0.2 + 0.7 * ((x[:, 0] > 0).sum((1, 2)) >= wanted).float())
    assert value(NGUYEN, net, MAPS, photos(IMAGES)).tolist() == [wanted] * 5


def test_each_image_has_its_own():
    shares = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
    images = shares.view(5, 1, 1, 1).expand(5, 1, 8, 8).contiguous()
    net = Odds(lambda x: 0.2 + 0.7 * ((x > 0).float().mean((1, 2, 3)) >= x.amax((1, 2, 3))).float())
    assert value(NGUYEN, net, MAPS, photos(images)).tolist() == [7, 20, 32, 45, 58]


def test_a_constant_map_or_one_of_zeros_is_scored_by_the_order_of_its_ties():
    net = Odds(lambda x: 0.1 + 0.8 * (x[:, 0, 3, 4] > 0).float())  # as many as it takes until one pixel comes
    flat = torch.zeros(1, 8, 8)
    for maps in (flat, flat + 0.7):
        one = value(f"{NGUYEN[:-1]},ties=rise)", net, maps, photos(IMAGES[:1]))
        assert one.item() == 64 - (3 * 8 + 4)
        by_lot = value(NGUYEN, net, maps.expand(200, 8, 8), photos(IMAGES[:1].expand(200, 3, 8, 8)))
        assert by_lot.mean().item() == pytest.approx(32.5, abs=4 * 64 / (12 * 200) ** 0.5)


@pytest.mark.parametrize("tolerance", [0.0001, 0.01, 0.1])
def test_the_tolerance_is_of_the_squared_change(tolerance):
    net = Odds(lambda x: (x[:, 0] > 0).float().mean((1, 2)) * 0.5 + 0.25)  # 0.75 when whole
    wanted = next(k for k in range(65) if (0.5 * (1 - k / 64)) ** 2 <= tolerance)
    found = value(f"effective_complexity(definition=nguyen,tolerance={tolerance})", net, MAPS, photos(IMAGES))
    assert found.tolist() == [wanted] * 5


def test_the_highest_pixels_are_the_ones_that_are_kept():
    row, column = divmod(MAPS[0].flatten().argsort(descending=True)[9].item(), 8)
    net = Odds(lambda x: 0.1 + 0.8 * (x[:, 0, row, column] > 0).float())
    assert value(NGUYEN, net, MAPS[:1], photos(IMAGES[:1])).item() == 10


def test_it_takes_a_pass_for_each_halving():
    _, _, cost = judged(NGUYEN, small_cnn(), MAPS, photos(IMAGES))
    assert cost.passes == 5 * (1 + 7)


def test_a_value_does_not_depend_on_its_neighbours():
    tied = MAPS.mul(4).round()
    net = Odds(lambda x: (x.mean((1, 2, 3)) * 4 - 1).sigmoid())
    together = value(NGUYEN, net, tied, photos(IMAGES))
    assert len(together.unique()) > 1
    for i in range(5):
        assert (
            value(NGUYEN, net, tied[i : i + 1], photos(IMAGES[i : i + 1], first=100 + i)).item() == together[i].item()
        )


@pytest.mark.parametrize("given", ["epsilon=2.0", "epsilon=-1.0", "tolerance=1.0", "tolerance=-0.1"])
def test_bounds_that_mean_nothing_are_refused(given):
    with pytest.raises(AssertionError, match=f"{given}.* wanted both from 0 to below 1"):
        value(f"effective_complexity({given})", Odds(lambda x: x.mean((1, 2, 3))), MAPS, photos(IMAGES))


def test_another_definition_is_refused():
    with pytest.raises(AssertionError, match="there is no definition 'quantus'"):
        value("effective_complexity(definition=quantus)", small_cnn(), MAPS, photos(IMAGES))
