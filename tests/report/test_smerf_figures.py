"""The SMERF figures: the numbers in options and rows are those of the run, the paper's stand beside them."""

import json

import numpy as np
import pytest

from saliometer.engine.presets import SMERF
from saliometer.report.figures import figures
from saliometer.report.figures.example import example
from saliometer.report.figures.smerf_2 import smerf_2
from saliometer.report.figures.smerf_6a import smerf_6a
from saliometer.report.figures.smerf_6b import smerf_6b
from saliometer.report.figures.smerf_7 import smerf_7
from saliometer.report.figures.smerf_8a import smerf_8a
from saliometer.report.figures.smerf_8b import smerf_8b
from saliometer.report.figures.smerf_9 import smerf_9
from saliometer.report.pack import script
from saliometer.studies._smerf_paper import paper, stored
from smerf_toys import CR2, FR, NR, PAFL, SAFL, drawn, rows_of, scene, toy

CHARTS = [smerf_2, smerf_6a, smerf_6b, smerf_7, smerf_8a, smerf_8b]
ORDER = ["oracle", "good", "gradient", "random"]  # best first


@pytest.fixture(scope="module")
def view(tmp_path_factory):
    return toy(tmp_path_factory.mktemp("run"), {"pafl": PAFL, "safl": SAFL, "piou": PAFL})


def test_means_over_buckets_with_their_standard_deviation(view):
    drawing = smerf_6a(view)
    chart = drawing.charts[0]
    values = list(PAFL["good"].values())[:5]  # simple
    row = rows_of(drawing, metric="pafl", group="simple")["good"]
    assert row["value"] == pytest.approx(np.mean(values))
    assert [row["low"], row["high"]] == pytest.approx(
        [np.mean(values) - np.std(values), np.mean(values) + np.std(values)]
    )
    assert [label["value"] for label in chart.option["yAxis"][0]["data"]] == [
        "oracle",
        "good",
        "gradient (G)",
        "random",
    ]
    assert [item["value"][:2] for item in drawn(chart, "PAFL")] == [[100, 0], [70, 1], [20, 2], [5, 3]]
    assert [item["value"][:2] for item in drawn(chart, "SAFL", panel=1)] == [[0, 0], [30, 1], [30, 2], [5, 3]]
    assert drawn(chart, "PAFL", "custom")[1] == pytest.approx(
        [1, 70, 70 - 100 * np.std(values), 70 + 100 * np.std(values)], abs=0.05
    )
    assert drawn(chart, "ceiling (the oracle)") == []
    lines = next(one["markLine"] for one in chart.option["series"] if one["name"] == "ceiling (the oracle)")
    assert lines["data"] == [{"xAxis": 100}]


def test_controls_are_grey_and_methods_are_not(view):
    items = drawn(smerf_6a(view).charts[0], "PAFL")
    assert [item.get("itemStyle", {}).get("color") for item in items] == ["@control", None, None, "@control"]


def test_parts_of_the_buckets_with_and_without_another_object(view):
    drawing = smerf_6a(view)
    wanted = {"simple-fr: letter": 0.65, "simple-fr: no letter": 0.9, "simple-nr: Box1": 0.5, "simple-nr: no Box1": 0.8}
    for group, value in wanted.items():
        assert rows_of(drawing, metric="pafl", group=group)["good"]["value"] == pytest.approx(value)
    assert rows_of(drawing, metric="safl", group="simple-fr: letter")["good"]["value"] == pytest.approx(0.3)
    assert rows_of(drawing, metric="safl", group="simple-fr: no letter") == {}  # Box1 stands alone in bucket 7


def test_complex_reasoning_and_what_decides_in_cr2(view):
    drawing = smerf_8a(view)
    assert rows_of(drawing, metric="pafl", group="complex")["good"]["value"] == pytest.approx(0.5)
    assert rows_of(drawing, metric="pafl", group="complex-cr2: Box1")["good"]["value"] == pytest.approx(0.4)
    assert rows_of(drawing, metric="safl", group="complex-cr2: Box2")["good"]["value"] == pytest.approx(0.1)
    assert rows_of(drawing, group="complex-cr2: both boxes") == {}


def test_by_the_number_of_objects(view):
    drawing = smerf_6b(view)
    for group, value in {"simple-fr: 1 object": 0.9, "simple-fr: 2 objects": 0.7, "simple-fr: 3 objects": 0.6}.items():
        assert rows_of(drawing, metric="pafl", group=group)["good"]["value"] == pytest.approx(value)
    assert rows_of(drawing, metric="pafl", group="simple-nr: 3 objects") == {}
    assert rows_of(drawing, metric="safl", group="simple-fr: 3 objects")["good"]["value"] == pytest.approx(0.4)
    three = next(one for one in drawing.charts[0].option["series"] if one["name"] == "PAFL, 3 objects")
    assert three["label"]["formatter"] == "3"
    assert [item["value"][0] for item in three["data"]] == [100, 60, 10, 5]


def test_the_worst_bucket_of_simple_and_complex(view):
    drawing = smerf_8b(view)
    assert rows_of(drawing, group="simple", join="min")["good"]["value"] == 0.5
    assert rows_of(drawing, group="complex", join="min")["gradient"]["value"] == pytest.approx(0.1)
    assert [item["value"][0] for item in drawn(drawing.charts[0], "complex reasoning")] == [100, 40, 10, 5]


def test_overlap_has_a_mean_and_a_lowest_bucket(view):
    drawing = smerf_2(view)
    assert [item["value"][0] for item in drawn(drawing.charts[0], "mean over buckets")] == [100, 70, 20, 5]
    assert [item["value"][0] for item in drawn(drawing.charts[0], "lowest bucket", panel=1)] == [100, 40, 10, 5]
    half = next(one["markLine"]["data"] for one in drawing.charts[0].option["series"] if one["name"] == "half")
    assert half == [{"xAxis": 50}]


def test_success_and_failure_by_setting(view):
    (chart,) = smerf_7(view).charts
    rows = {(row["method"], row["setting"]): row for row in chart.rows}
    assert rows["good", FR] == {
        "method": "good", "setting": FR, "value": 1.0, "succeeded": 2, "failed": 0, "buckets": 2, "fails": False,
    }  # fmt: skip
    assert rows["gradient", FR]["fails"] is True
    assert rows["good", CR2]["value"] == 0.5
    assert rows["good", CR2]["fails"] is False  # in one of two, not in more than half
    cells = {tuple(cell["value"][:2]): cell["label"] for cell in chart.option["series"][0]["data"]}
    place, method = chart.option["xAxis"]["data"].index(FR), ORDER.index("gradient")
    assert cells[place, method] == {"formatter": "0/2\n✕", "color": "@fail", "fontWeight": 700}
    assert cells[place, ORDER.index("good")] == {"formatter": "2/2"}


def test_a_cell_without_a_value_is_left_empty(tmp_path):
    lacking = PAFL | {"good": {cell: value for cell, value in PAFL["good"].items() if cell != (FR, 8)}}
    view = toy(tmp_path, {"pafl": lacking, "safl": SAFL})
    (chart,) = smerf_7(view).charts
    assert {row["setting"] for row in chart.rows if row["method"] == "good"} == {NR, CR2}
    assert "good" not in rows_of(smerf_6a(view), metric="pafl", group="simple")  # a mean over fewer buckets is another


def test_the_papers_values_stand_beside_methods_with_its_parameters(view):
    drawing = smerf_6a(view)
    rows = rows_of(drawing, metric="pafl", group="simple")
    assert rows["gradient"]["paper"] == 0.11
    assert np.isnan(rows["good"]["paper"])
    assert np.isnan(rows["random"]["paper"])  # the paper's has three channels
    assert drawn(drawing.charts[0], "the paper") == [[11, ORDER.index("gradient")]]
    assert "clean are not expected to agree" in drawing.note


def test_the_papers_parameters_are_part_of_the_match(tmp_path):
    cells = {(FR, 7): 0.9, (FR, 8): 0.7}
    view = toy(tmp_path, {"pafl": {SMERF["IG"]: cells, "integrated_gradients": cells}}, definition="authors")
    drawing = smerf_8b(view)
    rows = rows_of(drawing, group="simple")
    assert rows[SMERF["IG"]]["paper"] == 0.43
    assert np.isnan(rows["integrated_gradients"]["paper"])
    assert "definition authors, as here" in drawing.note


def test_without_a_value_of_the_paper_nothing_is_said_of_it(tmp_path):
    drawing = smerf_8b(toy(tmp_path, {"pafl": {"good": PAFL["good"]}}))
    assert "diamond" not in drawing.note
    assert "the paper" not in {one["name"] for one in drawing.charts[0].option["series"]}


def test_stored_values_are_read_from_the_file():
    assert stored("pafl", "simple", "mean", SMERF["LRP-eps"]) == 0.71
    assert stored("piou", "complex", "min", SMERF["DT"]) == 0.15
    assert stored("pafl", "simple-nr: 2 objects", "mean", SMERF["LRP-z"]) == 0.68
    assert stored("safl", "complex-cr2: Box1", "mean", SMERF["DL-R"]) == 0.61
    assert np.isnan(stored("pafl", "complex", "mean", SMERF["G-CAM"]))  # undefined in the authors' figure
    assert np.isnan(stored("pafl", "simple", "mean", "integrated_gradients"))
    assert {method for *_, method in paper()} == set(SMERF)


def test_every_part_of_the_papers_values_is_drawn():
    from saliometer.report.figures import smerf_6a as six
    from saliometer.report.figures import smerf_6b as by_number
    from saliometer.report.figures import smerf_8a as eight
    from saliometer.report.figures import smerf_22 as others

    parts = {part.name for part in (*six.PARTS, *eight.PARTS)} | {"simple", "complex"}
    parts |= {part.name for some in others.SETTINGS.values() for part in some}
    parts |= {f"{setting}: {words}" for setting, some in by_number.SHOWN.items() for words in some}
    assert {group for _, group, _, _ in paper()} <= parts


@pytest.mark.parametrize("draw", CHARTS)
def test_only_simple_settings_and_no_safl(draw, tmp_path):
    """What there is is drawn."""
    simple = {m: {cell: v for cell, v in cells.items() if cell[0] == FR} for m, cells in PAFL.items()}
    drawing = draw(toy(tmp_path, {"pafl": simple}))
    assert (drawing is None) == (draw in (smerf_2, smerf_7, smerf_8a))
    if drawing:
        assert {row["metric"] for chart in drawing.charts for row in chart.rows} == {"pafl"}
        assert all(len(chart.option["grid"]) == 1 for chart in drawing.charts)


@pytest.mark.parametrize("draw", [*CHARTS, smerf_9, example])
def test_where_nothing_decides_nothing_is_drawn(draw, tmp_path):
    view = toy(tmp_path, {"pafl": {"good": {(FR, 1): np.nan}}, "safl": {"good": {(FR, 1): np.nan}}})
    assert draw(view) is None


def test_one_image_in_one_bucket_has_no_whiskers(tmp_path):
    view = toy(tmp_path, {"pafl": {"good": {(FR, 8): 0.7}}, "safl": {"good": {(FR, 8): 0.1}}}, images=1)
    chart = smerf_6a(view).charts[0]
    assert drawn(chart, "PAFL", "custom") == []
    assert drawn(chart, "PAFL")[0]["value"] == [70, 0, None]


@pytest.mark.parametrize("draw", CHARTS)
def test_options_and_rows_are_plain_json(draw, view):
    drawing = draw(view)
    for chart in drawing.charts:
        back = json.loads(script({"option": chart.option, "rows": list(chart.rows)}))
        assert back["option"]["series"]
        assert back["rows"]
        assert chart.label


def test_maps_of_every_model_say_whether_their_images_are_the_same(tmp_path):
    image = np.zeros((2, 64, 64), np.uint8)
    for name, other, pictures in (("same", image, 2 * 2 + 2), ("differ", image + 255, 2 * 2 * 2)):
        view = toy(tmp_path / name, {"pafl": PAFL | {"integrated_gradients": PAFL["gradient"]}, "safl": SAFL})
        scene(view, FR, image, 0)
        assert smerf_9(view) is None  # one model compares with nothing
        scene(view, NR, other, 1)
        html = smerf_9(view).html
        assert html.count("<img") == pictures  # maps, and one image a row or one a cell
        assert ("Each setting has images of its own" in html) == (name == "differ")
        assert "map of integrated_gradients" in html
        assert "map of good" not in html


def test_maps_are_of_the_leader_where_there_are_no_integrated_gradients(tmp_path):
    view = toy(tmp_path, {"pafl": PAFL, "safl": SAFL})
    for place, setting in enumerate((FR, NR)):
        scene(view, setting, np.zeros((2, 64, 64), np.uint8), place)
    assert smerf_9(view).html.count("map of good") == 4


def test_the_example_shows_the_first_the_last_and_noise(tmp_path):
    view = toy(tmp_path, {"pafl": PAFL, "safl": SAFL})
    scene(view, FR, np.zeros((2, 64, 64), np.uint8), 0)
    html = example(view).html
    assert [f"map of {name}" in html for name in ("good", "gradient", "random", "oracle")] == [True, True, True, False]
    assert "60.0" in html  # PAFL of the image with the most objects


def test_figures_stand_in_the_order_of_the_paper():
    names = [one.name for one in figures("bench")]
    assert names == ["example", *(draw.__name__ for draw in CHARTS), "smerf_9"]
    assert [one.order for one in figures("bench")] == list(range(10, 90, 10))
