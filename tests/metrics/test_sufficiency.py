"""Sufficiency: known answers of a model that looks at one pixel."""

import pytest
import torch
from torch import nn

from battery_toys import judged, photos, value
from decision_toys import IMAGES, Threshold, maps
from toys import small_cnn


def test_a_map_that_shows_the_pixel_wholly_is_sufficient():
    found, _, _ = judged("sufficiency", Threshold(1.0), maps(1.0, 0.999, 0.0), photos(IMAGES, 1))
    assert found["sufficiency"].tolist() == [1.0, 0.0, 0.0]
    assert found["sufficiency.share"].tolist() == [1.0, 0.0, 0.0]


def test_a_superset_shows_at_least_as_much():
    """Half shown is enough for t = 0.5, and so is more; a quarter is not, though some supersets are."""
    found, _, _ = judged("sufficiency", Threshold(0.5), maps(0.5, 0.25, 1.0), photos(IMAGES, 1))
    assert found["sufficiency"].tolist() == [1.0, 0.0, 1.0]
    assert found["sufficiency.share"][0] == found["sufficiency.share"][2] == 1


def test_the_share_is_that_of_the_draws():
    """m' = 0.25 + 0.75 u is at least 0.5 in two of three draws."""
    count = 400
    samples = photos(torch.ones(count, 3, 4, 4), 1)
    found, _, _ = judged("sufficiency", Threshold(0.5), maps(*[0.25] * count), samples)
    assert found["sufficiency.share"].mean().item() == pytest.approx(2 / 3, abs=4 * (2 / 9 / (16 * count)) ** 0.5)
    assert found["sufficiency"].tolist() == [0.0] * count  # the map itself is not enough


def test_all_ones_are_sufficient_and_all_zeros_only_if_black_will_do():
    flat = torch.full((3, 4, 4), 0.7)
    net = nn.Sequential(nn.Upsample(scale_factor=2), small_cnn())
    images = torch.rand(3, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        samples = photos(images, net(images).argmax(1))
    assert value("sufficiency", net, flat, samples, constant="ones").tolist() == [1.0] * 3
    assert value("sufficiency", net, torch.ones(3, 4, 4), samples, method="all_ones").tolist() == [1.0] * 3
    assert value("sufficiency", Threshold(0.5), flat, photos(IMAGES, 1), constant="zeros").tolist() == [0.0] * 3
    assert value("sufficiency", Threshold(0.0), flat, photos(IMAGES, 1), constant="zeros").tolist() == [1.0] * 3


def test_a_target_that_is_not_predicted_is_invalid():
    found, notes, _ = judged(
        "sufficiency", Threshold(1.0), maps(1.0, 1.0, 1.0), photos(IMAGES, torch.tensor([1, 0, 2]))
    )
    assert found["sufficiency"].isnan().tolist() == [False, True, True]
    assert found["sufficiency.share"].isnan().tolist() == [False, True, True]
    assert notes == ["", *["the explained class is not the predicted one"] * 2]


def test_a_constant_map_is_invalid():
    assert value("sufficiency", Threshold(1.0), torch.ones(3, 4, 4), photos(IMAGES, 1)).isnan().all()


def test_draws_follow_the_image_alone():
    count = 12
    samples, some = photos(torch.ones(count, 3, 4, 4), 1), maps(*[0.5] * count)
    found = judged("sufficiency(draws=5)", Threshold(0.75), some, samples)[0]["sufficiency.share"]
    assert len(found.unique()) > 1
    other = judged("sufficiency(draws=5)", Threshold(0.75), some, samples, method="grad_cam")[0]["sufficiency.share"]
    assert torch.equal(found, other)
    for i in range(count):
        alone = judged(
            "sufficiency(draws=5)", Threshold(0.75), some[:1], photos(torch.ones(1, 3, 4, 4), 1, first=100 + i)
        )
        assert alone[0]["sufficiency.share"].item() == found[i].item()


def test_no_draw_at_all_is_refused():
    with pytest.raises(AssertionError, match="draws=0: wanted 1 or more"):
        value("sufficiency(draws=0)", Threshold(1.0), maps(1.0, 1.0, 1.0), photos(IMAGES, 1))
