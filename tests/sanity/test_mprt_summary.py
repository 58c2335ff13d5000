"""What rows of randomisation tests amount to, worked out by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest

from saliometer import results
from saliometer.sanity.plan import stages
from saliometer.sanity.summary import columns, curves, label, reasons, sentences

LAYERS = ["conv", "body", "head"]
DEFINITION = (
    "sum(by=block,draws=2,layers=all,multiplier=keep,norms=reestimate,order={},scaling=plain,similarity=spearman,"
    "target=fixed)"
)


def rows(method: str, values, order: str = "top_down", metric: str = "mprt") -> pa.Table:
    """Of values (images, draws, stages)."""
    array, found = np.asarray(values, float), []
    named = {"task": "images", "setting": "s", "model": "m", "region": "", "target": "predicted", "condition": ""}
    ids = [f"image-{place}" for place in range(len(array))]
    for draw in range(array.shape[1]):
        for place, stage in enumerate(stages(order, LAYERS)):
            constant = {**named, "method": method, "metric": metric, "definition": DEFINITION.format(order)}
            said = ["" if not math.isnan(value) else "a reason" for value in array[:, draw, place]]
            block = results.block(constant, ids, [""] * len(ids), array[:, draw, place], said)
            found.append(results.with_texts(block, "condition", [stage.condition(order, draw)] * len(ids)))
    return pa.concat_tables(found)


VALUES = [[[0.8, 0.4, 0.0], [0.6, 0.2, 0.2]], [[1.0, 0.6, 0.4], [0.8, np.nan, 0.2]]]


def test_a_curve_is_the_mean_over_images_and_draws_at_each_stage():
    (curve,) = curves(rows("gradient", VALUES))
    assert curve.layers == ("head", "body", "conv")
    assert curve.means.tolist() == pytest.approx([0.8, 0.4, 0.2])
    assert curve.spread.tolist() == pytest.approx([2**-0.5 * 0.2, 2**-0.5 * 0.3, 0])  # draws: .9 .7, .5 .2, .2 .2
    assert curve.undefined == {"a reason": 1}


def test_columns_are_means_ends_and_spreads_of_each_image():
    found = {
        c.metric: c for c in columns(curves(pa.concat_tables([rows("one", VALUES), rows("two", np.ones((2, 2, 3)))])))
    }
    assert list(found) == ["mprt", "mprt.spread", "mprt.full"]
    assert found["mprt"].methods == ("one", "two")
    assert found["mprt"].values[:, 0].tolist() == pytest.approx([2.2 / 6, 3.0 / 5])
    assert found["mprt.full"].values[:, 0].tolist() == pytest.approx([0.1, 0.3])
    assert found["mprt.spread"].values[:, 0].tolist() == pytest.approx(
        [2**-0.5 * (0.4 - 1 / 3), 2**-0.5 * (2 / 3 - 0.5)]
    )
    assert found["mprt"].values[:, 1].tolist() == [1, 1]


def test_one_layer_at_a_time_has_no_end_and_one_draw_no_spread():
    (curve,) = curves(rows("one", np.full((1, 1, 3), 0.5), "independent"))
    assert set(curve.each) == {"", "spread"}
    assert np.isnan(curve.each["spread"]).all()
    assert curve.as_dict()["stages"][0] == {"stage": 1, "layer": "conv", "mean": 0.5, "spread_of_draws": None}


def test_rows_of_other_metrics_are_no_curves():
    assert curves(rows("one", VALUES, metric="cose")) == []
    assert sentences([]) == []


def test_labels_say_what_is_not_as_usual():
    assert label("mprt", DEFINITION.format("top_down")) == "mprt spearman"
    assert label("mprt.full", DEFINITION.format("bottom_up")) == "mprt.full bottom_up spearman"


def test_what_has_no_value_is_told_with_its_reason_and_how_not_to_read_the_rest():
    found = curves(rows("one", VALUES))
    assert reasons(found) == ["mprt top_down of one (spearman): 1 of 12 comparisons have no value: a reason"]
    said = sentences(found)
    assert said[0].startswith("mprt: 3 stages, 2 draws of each")
    assert "Neither end" in said[-1]
