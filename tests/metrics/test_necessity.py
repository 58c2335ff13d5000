"""Necessity: known answers of a model that looks at one pixel."""

import pytest
import torch

from battery_toys import all_costs, judged, photos, value
from decision_toys import IMAGES, Threshold, maps
from toys import model_of


def test_a_map_that_shows_just_enough_is_necessary():
    found, _, _ = judged("necessity", Threshold(1.0), maps(1.0, 0.999, 0.0), photos(IMAGES, 1))
    assert found["necessity"].tolist() == [1.0, 1.0, 1.0]
    assert found["necessity.share"].tolist() == [1.0, 1.0, 1.0]
    assert found["necessity.both"].tolist() == [1.0, 0.0, 0.0]


def test_a_map_that_shows_more_than_enough_is_not():
    """t = 0.5 and a pixel shown wholly: half of the submaps lose the class."""
    count = 400
    samples = photos(torch.ones(count, 3, 4, 4), 1)
    found, _, _ = judged("necessity", Threshold(0.5), maps(*[1.0] * count), samples)
    assert found["necessity.share"].mean().item() == pytest.approx(0.5, abs=4 * (0.25 / (16 * count)) ** 0.5)
    assert found["necessity"].mean() < 0.02
    assert value("sufficiency", Threshold(0.5), maps(*[1.0] * count), samples).tolist() == [1.0] * count


def test_a_submap_never_shows_more_than_its_map():
    """A pixel shown by 0.49 is below t = 0.5, and so is all that shows less; most of what shows more is not."""
    found, _, _ = judged("necessity", Threshold(0.5), maps(0.49, 0.49, 0.49), photos(IMAGES, 1))
    assert found["necessity"].tolist() == found["necessity.share"].tolist() == [1.0] * 3
    assert found["necessity.both"].tolist() == [0.0] * 3
    more = judged("sufficiency", Threshold(0.5), maps(0.49, 0.49, 0.49), photos(IMAGES, 1))[0]["sufficiency.share"]
    assert more.max() == 1  # the map itself is what fails


def test_an_empty_map_has_nothing_below_it():
    flat = torch.ones(3, 4, 4)
    found, notes, _ = judged("necessity", Threshold(1.0), flat, photos(IMAGES, 1), constant="zeros")
    assert found["necessity"].isnan().all()
    assert notes == ["constant map; nothing is less than an empty map"] * 3
    ones = value("necessity", Threshold(1.0), flat, photos(IMAGES, 1), constant="ones")
    assert ones.tolist() == [1.0] * 3


def test_a_class_that_black_keeps_is_never_lost():
    found, _, _ = judged("necessity", Threshold(0.0), maps(1.0, 0.5, 0.0), photos(IMAGES, 1))
    assert found["necessity"].tolist() == found["necessity.share"].tolist() == [0.0] * 3


def test_a_target_that_is_not_predicted_is_invalid():
    found, notes, _ = judged("necessity", Threshold(1.0), maps(1.0, 1.0, 1.0), photos(IMAGES, torch.tensor([1, 0, 1])))
    for values in found.values():
        assert values.isnan().tolist() == [False, True, False]
    assert notes == ["", "the explained class is not the predicted one", ""]


def test_beside_sufficiency_it_costs_only_its_draws():
    costs = all_costs(
        ["sufficiency", "necessity"], model_of(Threshold(1.0)), maps(1.0, 0.5, 0.0)[:, None], photos(IMAGES, 1)
    )
    assert [cost.passes for cost in costs] == [3 * 18, 3 * 16]
    (alone,) = all_costs(["necessity"], model_of(Threshold(1.0)), maps(1.0, 0.5, 0.0)[:, None], photos(IMAGES, 1))
    assert alone.passes == 3 * 34


def test_no_draw_at_all_is_refused():
    with pytest.raises(AssertionError, match="draws=0: wanted 1 or more"):
        value("necessity(draws=0)", Threshold(1.0), maps(1.0, 1.0, 1.0), photos(IMAGES, 1))
