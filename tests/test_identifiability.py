"""Which setting a map belongs to, told by the nearest centroid: answers worked out by hand."""

import numpy as np
import pyarrow as pa
import pytest

from saliometer import results
from saliometer.identifiability import credits, empty_maps, identifiability, told


def rows_of(shares: np.ndarray, method: str = "mine", notes: str = "") -> pa.Table:
    """(settings, images, objects) of bucket 5 as rows."""
    blocks = []
    for place, setting in enumerate(shares):
        for thing in range(shares.shape[2]):
            name = "share." + ("background" if thing == 0 else f"object{thing}")
            constant = {"task": "textbox", "setting": f"s{place}", "model": "m", "method": method, "metric": name}
            constant |= {"definition": "clean", "region": "box", "target": "predicted", "condition": ""}
            ids = [f"test-{image}" for image in range(len(setting))]
            blocks.append(results.block(constant, ids, ["5"] * len(ids), setting[:, thing], [notes] * len(ids)))
    return pa.concat_tables(blocks).unify_dictionaries()


def test_maps_that_lie_apart_are_all_told_right():
    shares = np.zeros((3, 4, 3)) + np.eye(3)[:, None, :]
    assert (credits(shares) == 1).all()


def test_settings_that_look_the_same_share_one_point():
    """Two alike and one apart: 1/2, 1/2 and 1, so 2/3 on average: the number of groups over that of settings."""
    shares = np.zeros((3, 4, 2))
    shares[2] = 1
    assert credits(shares).tolist() == [[0.5] * 4, [0.5] * 4, [1.0] * 4]


def test_a_map_like_another_setting_s_is_told_wrong():
    shares = np.zeros((2, 5, 1))
    shares[1] = 1
    shares[0, 3] = 1
    found = credits(shares)
    assert found[0].tolist() == [1, 1, 1, 0, 1]
    assert (found[1] == 1).all()


def test_no_map_is_learnt_from_when_its_image_is_judged():
    """Each image has shares of its own that both settings' maps repeat: were its own map learnt from, all were right.

    Setting 0 lies at the image's own place and setting 1 a little beside it, by turns left and right.
    """
    rng = np.random.default_rng(0)
    places = rng.normal(size=(200, 1))
    shares = np.stack((places, places + 1e-6 * np.where(np.arange(200) % 2, 1, -1)[:, None]))
    assert credits(shares).mean() == pytest.approx(0.5, abs=0.1)


def test_noise_is_told_by_chance_whatever_the_folds():
    """A thousand draws of seven settings: 1/7 within four standard errors, so that no fold favours a setting."""
    rng = np.random.default_rng(0)
    for folds in (2, 5, 10):
        means = [credits(rng.normal(size=(7, 10, 3)), folds).mean() for _ in range(1000)]
        assert np.mean(means) == pytest.approx(1 / 7, abs=4 * np.std(means) / np.sqrt(1000))


def test_one_image_is_too_few():
    with pytest.raises(ValueError, match="1 image in a bucket: wanted 2 or more"):
        credits(np.zeros((7, 1, 3)))


def test_rows_become_one_value_for_each_image():
    shares = np.zeros((3, 4, 2))
    shares[2] = 1
    found = told(rows_of(shares)).to_pylist()
    assert [row["sample"] for row in found] == ["test-0", "test-1", "test-2", "test-3"]
    assert {(row["metric"], row["bucket"], row["method"]) for row in found} == {("told", "5", "mine")}
    assert [row["value"] for row in found] == [pytest.approx(2 / 3)] * 4


def test_the_order_of_rows_plays_no_part(rng):
    shares = np.random.default_rng(1).normal(size=(3, 12, 3))
    rows = rows_of(shares)
    turned = rows.take(pa.array(np.random.default_rng(2).permutation(len(rows))))
    one, other = (identifiability(some).estimate("mine", [0]) for some in (rows, turned))
    assert one == other


def test_an_interval_comes_from_resampled_images():
    """Twenty images, half of them told right in both settings and half in one: 0.75, and images vary by 0.25."""
    shares = np.zeros((2, 20, 1))
    shares[1] = 1
    shares[0, 10:] = 1
    shares[0, :10] = -1
    scores = identifiability(rows_of(shares))
    value, low, high = vars(scores.estimate("mine", [0])).values()
    spread = np.std(scores.values["all settings", "5"]) / np.sqrt(20)
    assert low == pytest.approx(value - 1.96 * spread, abs=0.03)
    assert high == pytest.approx(value + 1.96 * spread, abs=0.03)


def test_a_method_without_maps_of_one_setting_has_no_accuracy():
    whole, part = rows_of(np.zeros((3, 4, 2)), "whole"), rows_of(np.zeros((2, 4, 2)), "part")
    assert identifiability(pa.concat_tables([whole, part]).unify_dictionaries()).methods == ["whole"]


def test_empty_maps_are_counted_by_their_note():
    rows = pa.concat_tables([rows_of(np.zeros((2, 3, 2)), "a", "nan map"), rows_of(np.zeros((2, 3, 2)), "b")])
    assert empty_maps(rows.unify_dictionaries()) == {"a": {"nan map": 6}}
