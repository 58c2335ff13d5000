"""Consistency, sensitivity and COSE from rows that are worked out by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from saliometer import results
from saliometer.cose.operations import OPERATIONS, shifts
from saliometer.cose.summary import columns, coses, harmonic, label, sentences
from saliometer.cose.table import CHANGED, CORRECT, UNCHANGED, group_of, unmoved

FIRST = "default(mode=default)"
Row = tuple[str, str, str, str, float]  # method, metric, condition, sample, value


def table(rows: list[Row], definition: str = FIRST) -> pa.Table:
    blocks = []
    for method, metric, condition, sample, value in rows:
        constant = {
            "task": "images", "setting": "toys", "model": "net", "method": method, "metric": metric,
            "definition": definition, "region": "", "target": "predicted", "condition": condition,
        }  # fmt: skip
        blocks.append(results.block(constant, [sample], [""], np.array([value]), ["nan map" if value != value else ""]))
    return pa.concat_tables(blocks).unify_dictionaries()


ROWS: list[Row] = [
    ("grad", UNCHANGED, "flip_lr", "a", 0.9),
    ("grad", UNCHANGED, "rotate(bin=3,magnitude=13.5)", "a", 0.7),
    ("grad", UNCHANGED, "blur", "b", 0.8),
    ("grad", UNCHANGED, "checkpoint(name='1.pt')", "b", 0.1),  # a model that agrees never counts
    ("grad", CHANGED, "flip_ud", "a", 0.5),
    ("grad", CHANGED, "smooth", "a", 0.3),
    ("grad", CHANGED, "random_model", "b", 0.0),
    ("grad", CHANGED, "checkpoint(name='2.pt')", "b", 0.2),
    ("grad", CORRECT, "", "a", 1.0),
    ("grad", CORRECT, "", "b", 0.0),
]


def test_sets_and_means_are_those_of_the_paper():
    (found,) = coses(table(ROWS))
    assert found.value("consistency") == pytest.approx(0.8)
    assert found.value("sensitivity") == pytest.approx(1 - 0.25)
    assert found.value("sensitivity_geometric") == pytest.approx(0.5)
    assert found.value("sensitivity_photometric") == pytest.approx(0.7)
    assert found.value("sensitivity_model") == pytest.approx(0.9)
    assert found.value("discrimination") == pytest.approx(0.55)
    assert found.value("harmonic") == pytest.approx(2 * 0.8 * 0.75 / 1.55)
    assert found.value("geometric") == pytest.approx(math.sqrt(0.8 * 0.75))
    assert (found.count(UNCHANGED, "geometric", "photometric"), found.count(CHANGED)) == (3, 4)
    assert found.as_dict()["pairs"] == {
        "unchanged geometric": 2, "unchanged photometric": 1, "changed geometric": 1, "changed photometric": 1,
        "changed random_model": 1, "changed checkpoint": 1,
    }  # fmt: skip
    assert found.reasons() == []


def test_published_counts_only_images_that_the_model_gets_right():
    (found,) = coses(table(ROWS, "published(mode=published)"))
    assert found.value("consistency") == pytest.approx(0.8)  # of 0.9 and 0.7
    assert found.value("sensitivity") == pytest.approx(0.6)
    for broken_down in (coses(table(ROWS), correct_only=True)[0], coses(table(ROWS))[0].correct_only):
        assert broken_down.value("harmonic") == pytest.approx(2 * 0.8 * 0.6 / 1.4)
        assert broken_down.counting == 1
    assert coses(table(ROWS))[0].as_dict()["cose, correct only"] == [pytest.approx(2 * 0.8 * 0.6 / 1.4), None, None]


def test_translations_that_do_not_move_are_counted_among_pairs_that_count():
    rows = [*ROWS, ("grad", UNCHANGED, "translate_x(bin=1,magnitude=1.06667,side=64)", "b", 1.0)]  # b is wrong
    assert [coses(table(rows, f"{mode}(mode={mode})"))[0].still for mode in ("default", "published")] == [1, 0]


def test_similarity_that_has_nothing_to_do_with_the_prediction_cannot_pass_a_half():
    c = np.linspace(0.01, 1, 100)
    assert harmonic(c, 1 - c).max() == pytest.approx(0.5)


def test_discrimination_is_at_least_what_cose_promises():
    c, s = np.meshgrid(np.linspace(0.01, 1, 50), np.linspace(0, 1, 50))
    assert np.all(c + s - 1 >= 2 * harmonic(c, s) - 1 - 1e-12)


def test_empty_sets_are_nan_with_a_reason():
    (still,) = coses(table([row for row in ROWS if row[1] != CHANGED]))
    assert math.isnan(still.value("sensitivity"))
    assert math.isnan(still.value("harmonic"))
    assert still.value("consistency") == pytest.approx(0.8)
    assert still.reasons() == [
        "no pair changed the prediction, so there is no sensitivity: these checkpoints predict the same, give earlier "
        "ones"
    ]
    (moving,) = coses(table([row for row in ROWS if row[1] != UNCHANGED]))
    assert moving.reasons() == ["no changed image kept its prediction, so there is no consistency"]


def test_pairs_that_have_no_similarity_are_not_taken_for_pairs_that_were_not_there():
    rows = [(name, metric, condition, sample, math.nan) for name, metric, condition, sample, _ in ROWS[:8]]
    (found,) = coses(table([*rows, *ROWS[8:]]))
    assert found.reasons() == [
        "none of the 3 changed images that kept their prediction has a similarity, so there is no consistency",
        "none of the 4 pairs that changed the prediction has a similarity, so there is no sensitivity",
        "8 pairs have no similarity: nan map",
    ]


def test_where_the_model_is_never_right_published_says_that_nothing_counts():
    rows = [*ROWS[:8], ("grad", CORRECT, "", "a", 0.0), ("grad", CORRECT, "", "b", 0.0)]
    (found,) = coses(table(rows, "published(mode=published)"))
    assert math.isnan(found.value("harmonic"))
    assert found.reasons() == ["the model gets none of the 2 images right, and mode published counts no others"]


def test_without_checkpoints_the_advice_is_another():
    rows = [row for row in ROWS if row[1] != CHANGED and "checkpoint" not in row[2]]
    (still,) = coses(table(rows))
    assert still.reasons() == [
        "no pair changed the prediction, so there is no sensitivity: give checkpoints of the training"
    ]


def test_what_it_rests_on_is_said_once_where_it_is_the_same():
    both = pa.concat_tables([table(ROWS), table(ROWS, "default(mode=default,similarity=pearson)")])
    said = sentences(coses(both.unify_dictionaries()))
    assert len(said) == 2
    assert said[0].startswith("COSE (default) is made of these pairs: 2 unchanged geometric, 1 unchanged photometric")
    assert said[1].startswith("Where maps have nothing to do with the prediction COSE is 50 % at most")
    assert sentences([]) == []


def test_columns_of_one_stage_are_told_apart():
    kinds = ("fixed_target=false,similarity=ssim", "fixed_target=false,similarity=pearson", "fixed_target=true")
    tables = [table(ROWS, f"default(magnitudes=1,mode=default,{kind})") for kind in kinds]
    found = columns(coses(pa.concat_tables(tables).unify_dictionaries()))
    told = [label(column, found) for column in found if column.metric == "cose"]
    assert told == ["cose", "cose(similarity=pearson)", "cose(fixed_target=true)"]
    assert label(found[1], found[:8]) == "cose.consistency"


def test_consistency_at_or_below_zero_is_no_ground_for_cose():
    rows = [("m", UNCHANGED, "blur", "a", -0.2), ("m", CHANGED, "smooth", "a", 0.3)]
    (found,) = coses(table(rows))
    assert math.isnan(found.value("harmonic"))
    assert math.isnan(found.value("geometric"))
    assert found.reasons() == ["consistency is -0.200: at or below 0 COSE means nothing"]


def test_a_pair_without_similarity_is_left_out_and_told():
    (found,) = coses(table([*ROWS, ("grad", UNCHANGED, "equalize", "a", math.nan)]))
    assert found.value("consistency") == pytest.approx(0.8)
    assert found.reasons() == ["1 pair has no similarity: nan map"]


def test_intervals_resample_images_not_pairs():
    """Two images of 50 equal pairs each: only three means can be drawn, however many pairs there are."""
    rows = [("m", UNCHANGED, "blur", image, value) for image, value in (("a", 0.2), ("b", 0.8)) for _ in range(50)]
    (found,) = coses(table(rows))
    one = found.estimate("consistency")
    assert (one.value, one.low, one.high) == pytest.approx((0.5, 0.2, 0.8))


def test_one_image_has_no_interval():
    (found,) = coses(table([("m", UNCHANGED, "blur", "a", 0.2)]))
    assert math.isnan(found.estimate("consistency").low)


def test_of_two_images_of_which_one_counts_there_is_no_interval_either():
    rows = [row for row in ROWS if row[3] == "a"] + [("grad", CORRECT, "", "b", 0.0)]
    (found,) = coses(table(rows, "published(mode=published)"))
    assert len(found.images) == 2
    assert found.counting == 1
    assert math.isnan(found.estimate("consistency").low)


def test_columns_hold_the_statistic_of_all_pairs_and_paired_differences():
    other = [("other", metric, condition, sample, value - 0.1) for _, metric, condition, sample, value in ROWS]
    held = {column.metric: column for column in columns(coses(table([*ROWS, *other])))}
    column = held["cose.consistency"]
    assert column.methods == ("grad", "other")
    assert column.means.tolist() == pytest.approx([0.8, 0.7])
    gap = column.difference("grad", "other")
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.1, 0.1, 0.1))
    assert column.ranks(["grad", "other"]) == {"grad": 1, "other": 2}
    assert held["cose.sensitivity"].ranks(["grad", "other"]) == {"other": 1, "grad": 2}
    assert column.estimate("grad").value == pytest.approx(0.8)
    assert held["cose"].undefined("grad") == 0


def test_groups_and_translations_that_do_not_move():
    assert group_of("rotate(bin=-3,magnitude=-13.5)") == "geometric"
    assert group_of("color(bin=3,magnitude=0.1)") == "photometric"
    assert group_of("checkpoint(name='a b.pt')") == "checkpoint"
    assert group_of("random_model") == "random_model"
    assert unmoved("translate_x(bin=-3,magnitude=-3.2,side=64)")
    assert not unmoved("translate_x(bin=-4,magnitude=-4.26667,side=64)")
    assert not unmoved("rotate(bin=1,magnitude=0.5)")


def test_a_translation_is_still_where_no_pixel_moves():
    """Magnitudes that come out at a whole pixel but for rounding: what counts is what the images went through."""
    bins = torch.arange(1, 31)
    for side in (10, 14, 15, 42, 105, 224):
        told = [unmoved(OPERATIONS["translate_x"].label(number, (3, side, side))) for number in bins.tolist()]
        assert told == (shifts(bins, side) == 0).tolist(), side


def test_without_rows_of_pairs_there_is_nothing():
    assert coses(results.SCHEMA.empty_table()) == []
    assert columns([]) == []
