"""Figures of COSE's study on rows whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from cose_study_toys import block, evidence, pairs_for, printed, trained
from saliometer.cose.controls import CONTROLS
from saliometer.cose.table import UNCHANGED
from saliometer.report.figures._cose import INKS, Sheet
from saliometer.report.figures._violins import quartiles, violin
from saliometer.report.figures.cose_3 import cose_3
from saliometer.report.figures.cose_6 import cose_6
from saliometer.report.figures.cose_7 import cose_7
from saliometer.report.figures.cose_8 import cose_8
from saliometer.report.figures.cose_ablations import cose_gate, cose_weights
from saliometer.report.figures.cose_controls import cose_controls
from saliometer.report.figures.cose_grain import _inks
from saliometer.report.figures.cose_table_1 import cose_table_1
from saliometer.studies._cose_evidence import Evidence
from saliometer.studies._cose_figures import Shown
from saliometer.studies._cose_paper import METHODS, mean, table


def study_of(e) -> SimpleNamespace:
    return SimpleNamespace(evidence=e, trained=e.every)


@pytest.fixture(scope="module")
def paper():
    return study_of(printed())


def test_table_1_of_the_papers_rows_is_the_papers(paper):
    drawing = cose_table_1(paper)
    assert len(drawing.rows) == 21 * 7
    for row in drawing.rows:
        assert row["cose"] == pytest.approx(row["paper"], abs=0.006)
    assert drawing.html.count("<b>") == 21
    assert drawing.html.count("<u>") == 21
    assert "<b>71.5</b>" in drawing.html
    assert "convnext_small †" in drawing.html  # SparK misses the gate


def test_figure_3_shows_our_points_and_the_papers_distribution(paper):
    (chart,) = cose_3(paper).charts
    ours = [row for row in chart.rows if row["whose"] == "ours"]
    theirs = [row for row in chart.rows if row["whose"] == "paper"]
    assert len(ours) == len(theirs) == 55 * 7
    grads = [row["cose"] for row in theirs if (row["method"], row["family"]) == ("GradCAM", "ConvNets")]
    assert len(grads) == 25
    assert np.mean(grads) == pytest.approx(60.61, abs=0.01)
    shapes = [one for one in chart.option["series"] if one.get("renderItem") == "violin"]
    assert [len(one["data"]) for one in shapes] == [7, 7]
    assert [one["icon"] for one in chart.option["legend"]["data"]] == ["circle", "circle", "diamond", "diamond"]


def spread(method: str, values: list[float], how: str) -> pa.Table:
    """Rows of images whose one pair has such a similarity, NaN for none."""
    rows = block(method, [(UNCHANGED, "flip_lr", 0.0)], how, images=len(values))
    found = rows["value"].to_numpy().copy()
    found[np.array(rows["metric"].to_pylist()) == UNCHANGED] = values
    return rows.set_column(rows.schema.get_field_index("value"), "value", [found])


def test_figure_6_shows_the_distribution_over_images_and_the_mean():
    model = trained("toys", "resnet20")
    values = [0.2, 0.4, 0.5, 0.6, 0.8, float("nan")]
    blocks = [spread("GradCAM", values, how) for how in ("published", "default")]
    blocks += [block("IG", pairs_for(-15, 50), how) for how in ("published", "default")]  # four images, the same
    e = Evidence([model], {(model.data, model.label): [pa.concat_tables(blocks).unify_dictionaries()]})
    charts = cose_6(study_of(e)).charts
    assert [chart.title for chart in charts] == ["Mode published", "Mode default"]
    for chart in charts:
        rows = {(row["method"], row["models"]): row for row in chart.rows}
        assert list(rows) == [(m, lane) for m in ("GradCAM", "IG") for lane in ("all models", "ConvNets")]
        row = rows["GradCAM", "ConvNets"]
        assert row["values"] == 5  # one image has none
        found = [row[key] for key in ("mean", "lower_whisker", "first_quartile", "median", "third_quartile")]
        assert found == pytest.approx([50, 20, 40, 50, 60])
        assert row["mean_low"] < 50 < row["mean_high"]
        outlines = [one for one in chart.option["series"] if one.get("renderItem") == "violin"]
        assert [len(one["data"]) for one in outlines] == [1, 1, 0]  # of GradCAM: all, ConvNets, no Transformers
        small = [one for one in chart.option["series"] if one.get("symbolSize") == 4]
        assert [len(one["data"]) for one in small] == [4, 4, 0]  # four images are too few for a shape
        assert chart.option["xAxis"]["min"] == -20


def test_figure_7_has_the_papers_means(paper):
    (chart,) = cose_7(paper).charts
    for row in chart.rows:
        assert row["ours"] == pytest.approx(row["paper"], abs=0.006)
        assert row["paper"] == pytest.approx(mean(row["method"], data=row["condition"]))
    assert len(chart.rows) == 35
    on_a_phone = chart.option["media"][0]["option"]["grid"]
    assert [float(grid["width"].rstrip("%")) > 70 for grid in on_a_phone] == [True]  # one panel has all the room


def test_every_control_has_one_row_of_the_same_inks():
    """fresh_noise is a control of other studies, too, where it stands in grey below the methods."""
    model = trained("toys", "resnet20")
    names = [*METHODS, *CONTROLS]
    blocks = [block(name, pairs_for(60, 50), how) for name in names for how in ("published", "default")]
    (chart,) = cose_controls(study_of(Evidence([model], {(model.data, model.label): blocks}))).charts
    rows = [name for name in chart.option["yAxis"][0]["data"] if name]
    assert len(rows) == len(set(rows)) == 2 + len(CONTROLS)
    assert {one["name"] for one in chart.option["series"]} == {"published (R = 2)", "default (R = 1)"}


def test_figure_8_shows_all_bins_whichever_have_pairs():
    model = trained("toys", "resnet20")
    pairs = [(UNCHANGED, f"contrast(bin={bin},magnitude=0.3)", 0.8) for bin in (7, 9)]
    e = Evidence([model], {(model.data, model.label): [block("GradCAM", pairs)]})
    for chart in cose_8(study_of(e)).charts:
        assert (chart.option["xAxis"]["min"], chart.option["xAxis"]["max"]) == (1, 30)


def test_the_first_model_of_a_family_has_its_ink_and_no_two_models_share_one():
    models = [trained("toys", arch) for arch in ("resnet20", "convnext_tiny", "vit_tiny", "swin_tiny")]
    inks = _inks([[SimpleNamespace(model=model)] for model in models])
    assert [inks[0], inks[2]] == [INKS["ConvNets"], INKS["Transformers"]]
    assert len(set(inks)) == 4


def test_violins_widen_where_points_are():
    lane, *shape = violin([50, 51, 52, 53, 60], 7)
    places, halves = shape[::2], shape[1::2]
    assert lane == 7
    assert max(halves) == pytest.approx(0.48, abs=1e-3)
    assert 50 < places[halves.index(max(halves))] < 53
    assert violin([50, 51], 0) == []
    assert violin([50] * 9, 0) == []


def test_quartiles_and_whiskers():
    assert quartiles([1, 2, 3, 4, 5, 100]) == (1, 2.25, 3.5, 4.75, 5)


def test_first_weights_are_drawn_where_there_are_several(paper):
    drawing = cose_weights(paper)
    assert len(drawing.charts) == 20
    rows = {row["condition"]: row for row in drawing.charts[0].rows if row["method"] == "GradCAM"}
    assert list(rows) == ["supervised", "SparK"]
    assert rows["SparK"]["ours"] == pytest.approx(table()["Caltech101", "ConvNext", "GradCAM"], abs=0.01)
    one = study_of(evidence([trained("toys", "resnet20")], lambda model, method: (60.0, 60.0)))
    assert cose_weights(one) is None
    assert "No weight files were given" in cose_gate(one).note


def test_the_gate_counts_the_mean_over_data_sets(paper):
    rows = {(row["model"], row["data"]): row for row in cose_gate(paper).rows}
    spark = rows["convnext_small(init=SparK)", "mean of 5 data sets"]
    assert spark["accuracy"] == pytest.approx(68.46, abs=0.01)
    assert spark["gate"] == "misses 75 %"


def test_nothing_is_drawn_of_nothing():
    nothing = study_of(evidence([], lambda model, method: None))
    assert [draw(nothing) for draw in (cose_table_1, cose_3, cose_6, cose_7, cose_gate)] == [None] * 5


def test_a_row_of_maps_names_what_moved_and_holds_each_photograph_once():
    photo, other = np.zeros((4, 4, 3), np.uint8), np.full((4, 4, 3), 200, np.uint8)
    shades = np.linspace(0, 1, 16).reshape(4, 4)
    sheet = Sheet("toy")
    kept = Shown("flip_lr", 0.91, False, photo, shades)
    moved = Shown("contrast(bin=-30,magnitude=-0.99)", 0.2, True, other, shades)
    cells = [sheet.map(kept), sheet.map(moved), sheet.map(None), sheet.image(moved), sheet.map(kept, itself=True)]
    text = str(sheet.table([], cells))
    assert text.count("url(data:image/jpeg") == 2
    assert "0.91" in cells[0]
    assert "0.20, moved" in cells[1]
    assert "none" in cells[2]
    assert "contrast -0.99" in cells[3]
    assert "0.91" not in cells[4]
    assert len(METHODS) == 7
