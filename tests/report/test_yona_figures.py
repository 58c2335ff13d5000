"""Figures of the causal study from made-up rows: every number on a card or chart is the evidence's."""

import re

import numpy as np
import pytest

from saliometer.report.figures import Drawing, drawn, figures
from saliometer.report.figures.yona_1 import yona_1
from saliometer.report.figures.yona_2 import yona_2
from saliometer.report.figures.yona_4 import yona_4
from saliometer.report.figures.yona_5 import yona_5
from saliometer.report.figures.yona_6 import yona_6
from saliometer.report.figures.yona_7 import yona_7
from saliometer.report.figures.yona_checks import yona_checks
from saliometer.report.figures.yona_curves import yona_curves
from saliometer.report.figures.yona_energy import yona_energy
from saliometer.report.figures.yona_gates import yona_gates
from saliometer.report.figures.yona_similarity import yona_similarity
from saliometer.studies._yona_tables import curves
from yona_toys import CONTROLS, LAYERS, METHODS, evidence, pictures, study

NAMES = [label.partition("(")[0] for label in METHODS]


def made(draw, **changed) -> Drawing:
    found = draw(study(evidence(**changed)))
    assert found is not None
    return found


def test_all_seven_figures_are_drawn_and_those_of_the_text_come_before_charts():
    names = [one.figure.name for one in drawn("yona", study())]
    assert {f"yona_{number}" for number in range(1, 8)} <= set(names)
    assert names[:3] == ["yona_1", "yona_3", "yona_4"]
    assert [one.paper[-1] for one in figures("yona") if one.name in names[:3]] == ["1", "3", "4"]


@pytest.mark.parametrize("draw", [yona_1, yona_4, yona_5])
def test_a_card_for_every_method_shows_an_image_and_a_map_by_each_group(draw):
    html = made(draw).html
    cards = re.findall(r"<figure>.*?</figure>", html)
    assert [re.search(r'class="method">(.*?)<', card)[1] for card in cards] == [*NAMES, *CONTROLS]
    images = cards[0].count("<i class=")
    groups = cards[0].count("<img ") // images
    assert (images, groups) == {yona_1: (3, 3), yona_4: (3, 4), yona_5: (3, 3)}[draw]
    assert html.count("url(data:image/") == images  # each image travels once


def test_numbers_stand_under_the_pictures():
    e = evidence()
    row = made(yona_1).rows[0]
    one = e.energy("half", "gradient")
    assert (
        row["E on half"] == f"{one.effect.value:.3f} [{one.effect.low:.3f}, {one.effect.high:.3f}], E/B {one.share:.2f}"
    )
    assert row["bottom half"] == "0.87 / 0.51 / 0.51"
    assert row["verdict on half"] == "sensitive"
    assert 'class="sensitive">sensitive<' in made(yona_1).html
    assert made(yona_1, missed={"half": "accuracy"}).rows[0]["verdict on half"] == "undecided"


def test_what_models_predict_stands_under_their_maps():
    html = made(yona_6).html
    assert html.count("<figure>") == 1
    assert "<small>espresso</small>" in html
    assert "guided_backprop" in made(yona_7).html
    assert "guided_backprop" not in html


def test_the_graph_has_four_nodes_four_edges_and_ours():
    html = made(yona_2).html
    assert html.count("<circle") == 4
    assert html.count("<line") == 5
    assert html.count("stroke-dasharray") == 1


def test_a_chart_of_energies_holds_every_task_and_method():
    (chart,) = made(yona_energy).charts
    e = evidence()
    found = {(row["metric"], row["method"]): row for row in chart.rows}
    for task in e.tasks:
        for method in (*e.methods, *e.controls):
            row, one = found[f"E: {task}", method], e.energy(task, method).effect
            assert (row["ours"], row["low"], row["high"]) == (one.value, one.low, one.high)
    greys = [series for series in chart.option["series"] if series["name"] == "control" and series["type"] == "scatter"]
    assert len(greys[0]["data"]) == len(CONTROLS)


@pytest.mark.parametrize("draw", [yona_energy, yona_similarity])
def test_panels_share_one_scale_and_do_not_say_which_end_is_good(draw):
    (chart,) = made(draw).charts
    axes = chart.option["xAxis"]
    assert len({(axis["min"], axis["max"]) for axis in axes}) == 1
    ends = [end for row in chart.rows for end in (row["low"], row["high"])]
    assert axes[0]["min"] <= min(ends)
    assert axes[0]["max"] >= max(ends)
    assert not any("↑" in axis["name"] or "↓" in axis["name"] for axis in axes)


def test_a_map_without_mass_says_so():
    one = study()
    empty = pictures("digits")
    empty.maps["gradient"]["half"][0] = 0
    one.pictures = lambda scene: empty
    html = yona_1(one).html
    assert html.count("no mass") == 1


def test_curves_begin_at_one_and_follow_the_rows():
    chart = made(yona_curves).charts[0]
    e = evidence()
    points = {(row["name"], row["at"]): row["value"] for row in chart.rows}
    assert points["gradient", 0.0] == 1.0
    for place, layer in enumerate(LAYERS, 1):
        assert points["gradient", float(place)] == pytest.approx(
            float(e.curve("t", "gradient", "top_down")[layer].mean())
        )
    assert ", ".join(LAYERS) in chart.option["xAxis"]["name"]


def test_states_in_which_a_method_marks_nothing_are_left_out_of_its_curve():
    """Deep Taylor on a network with one layer drawn anew may give zeros for every image: like nothing, NaN."""

    def unknown(key, value):
        _, model, method, metric, *_, condition = key
        first, second = (condition == f"top_down(layer={LAYERS[k]},stage={k + 1})" for k in (0, 1))
        lost = first or (second and model == "t(seed=0)")
        return float("nan") if method == "gradient" and metric == "spearman_abs" and lost else value

    e = evidence(unknown)
    chart = yona_curves(study(e)).charts[0]
    points = {row["at"]: row["value"] for row in chart.rows if row["name"] == "gradient"}
    assert 1.0 not in points
    assert points[2.0] == pytest.approx(np.nanmean(e.curve("t", "gradient", "top_down")[LAYERS[1]]))
    (line,) = (line for line in curves(e, "t", "top_down", "spearman_abs").splitlines() if "| gradient" in line)
    assert line.split("|")[2].strip() == "-"
    assert line.split("|")[3].strip() == f"{points[2.0]:.3f}"


def test_the_classical_tests_stand_beside_e_for_noise_and_edges_too():
    rows = {row["method"]: row for row in made(yona_curves).rows}
    assert [rows[name]["MPRT, all layers"] for name in ("edge", "fresh_noise")] == ["1.000", "0.000"]
    assert rows["fresh_noise"]["E on t"].startswith("0.000 [")
    assert "<td>1.000</td>" in made(yona_curves).html


def test_both_checks_stand_side_by_side():
    drawing = made(yona_checks)
    rows = {row["method"]: row for row in drawing.rows}
    assert (rows["guided_backprop"]["original"], rows["guided_backprop"]["causal"]) == ("fails", "passes")
    (chart,) = drawing.charts
    phone, page = (one["option"]["series"][0]["label"]["show"] for one in chart.option["media"])
    assert (phone, page) == (False, True)  # there is no room for names
    shares = {row["method"]: row["mean E/B on causal tasks"] for row in chart.rows}
    e = evidence()
    assert shares["gradient"] == pytest.approx(
        np.mean([e.energy(task, "gradient").share for task in e.tasks if task != "t"])
    )


def test_a_missed_gate_is_marked():
    assert "missed" not in made(yona_gates).html
    assert made(yona_gates, missed={"t1": "A erased"}).html.count("✕ missed") == 1


def test_nothing_is_drawn_of_a_study_without_rows():
    empty = study(evidence(change=lambda key, value: None))
    empty.evidence.gates = {}
    assert {one.figure.name for one in drawn("yona", empty)} <= {
        "yona_1",
        "yona_2",
        "yona_3",
        "yona_4",
        "yona_5",
        "yona_6",
        "yona_7",
        "yona_ablations",
    }
