"""The figures of SMERF's study: each draws its own part, the paper's values stand where smerf.md has them."""

import json
import math

import numpy as np
import pyarrow as pa
import pytest

from saliometer import results
from saliometer.engine.presets import SMERF
from saliometer.report.figures import drawn as all_drawn
from saliometer.report.figures import figures
from saliometer.report.figures._smerf import condition
from saliometer.report.figures._study import seen
from saliometer.report.pack import script
from saliometer.studies._smerf_paper import paper, stored
from saliometer.studies._smerf_study import CONDITIONS, Study
from saliometer.studies._smerf_toy import toy_scores
from smerf_toys import FR, NR, PAFL, SAFL, drawn, rows_of, scene, toy

CR1 = "complex-cr1"
IG, EPS = SMERF["IG"], SMERF["LRP-eps"]
LIKE = {IG: "good", "gradient": "gradient", "oracle": "oracle"}
CELLS = {"pafl": (0.35, 0.1, 1), "safl": (0.45, 0.2, 0)}  # of bucket 8 in complex-cr1
METRICS = {
    metric: {m: of[LIKE[m]] | {(CR1, 8): value} for m, value in zip(LIKE, CELLS[metric], strict=True)}
    for metric, of in (("pafl", PAFL), ("safl", SAFL))
}
DRAWN = {  # part -> the figures that are not drawn without it
    "black": "13 17a 17b 18a 18b 19 20 21 22 23 24 25", "vgg16": "27", "alexnet": "26", "robust": "11 28",
    "natural": "12 31 32 33a 33b", "noise": "29 30a 30b", "": "10 14 15 16",
}  # fmt: skip
NEEDS = {number: part for part, numbers in DRAWN.items() for number in numbers.split()}


def metrics(times=1.0):
    """PIOU is half of PAFL, SIOU half of SAFL; MAFL as if all objects had 100 pixels."""
    found = {name: _times(some, times) for name, some in METRICS.items()}
    found |= {"piou": _times(found["pafl"], 0.5), "siou": _times(found["safl"], 0.5)}
    return found | {"pmafl": _times(found["pafl"], 0.01), "smafl": _times(found["safl"], 0.01)}


def _times(methods, factor):
    return {m: {cell: factor * value for cell, value in cells.items()} for m, cells in methods.items()}


def study(folder, parts=tuple(CONDITIONS), definition="authors", sweep=True):
    """Every part's scores are those of black times 1, 0.9, 0.8, ..."""
    runs = {}
    for place, part in enumerate(CONDITIONS):
        if part in parts:
            view = toy(folder / part, metrics(1 - place / 10), definition=definition, **CONDITIONS[part])
            for number, setting in enumerate((FR, NR)):
                scene(view, setting, np.zeros((2, 64, 64), np.uint8), number)
            runs[part] = view.run
    if sweep:
        values = {(IG, 100): 0.3, (IG, 400): 0.6, ("gradient", 100): 0.4, ("gradient", 400): 0.5}
        results.write(folder / "sweep.parquet", [_swept(k, method, value) for (method, k), value in values.items()])
    return Study(folder, "small", runs)


def _swept(k, method, value):
    constant = {
        "task": "textbox", "setting": CR1, "model": "m", "method": method, "region": "box", "target": "predicted",
        "condition": f"k({k})", "metric": "piou", "definition": "clean",
    }  # fmt: skip
    return results.block(constant, ["test-9-0"], ["9"], np.array([value]), [""])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return study(tmp_path_factory.mktemp("study"))


def draw(name, of):
    return next(one.draw for one in figures("smerf") if one.name == f"smerf_{name}")(of)


def test_every_figure_of_the_paper_from_10_on_is_there_once():
    known = [one for one in figures("smerf") if one.name != "identifiability"]  # Figure 9 as a number
    assert sorted(one.name for one in known) == sorted(f"smerf_{number}" for number in NEEDS)
    assert all(one.paper == f"SMERF Figure {one.name.removeprefix('smerf_')}" for one in known)
    assert min(one.order for one in known) > 100
    assert len({one.order for one in known}) == len(known)
    assert [one.name for one in known if not one.group] == ["smerf_10", "smerf_11", "smerf_12"]


@pytest.mark.parametrize("name", sorted(set(NEEDS) - {"21"}))
def test_a_whole_study_draws_it(name, whole):
    drawing = draw(name, whole)
    assert drawing.charts or drawing.html
    for chart in drawing.charts:
        back = json.loads(script({"option": chart.option, "rows": list(chart.rows)}))
        assert back["option"]["series"]
        assert back["rows"]
        assert chart.label


@pytest.mark.parametrize("name", sorted(name for name in NEEDS if NEEDS[name]))
def test_without_its_part_it_is_not_drawn(name, tmp_path):
    others = [part for part in ("black", "natural") if part != NEEDS[name]]
    assert draw(name, study(tmp_path, others)) is None


def test_an_empty_study_draws_toys_alone(tmp_path):
    assert [one.id for one in all_drawn("smerf", study(tmp_path, (), sweep=False))] == ["smerf_14", "smerf_16"]


def test_one_larger_network_is_enough(tmp_path):
    drawing = draw("10", study(tmp_path, ["alexnet"]))
    assert len(drawing.charts[0].option["grid"]) == 1


def test_larger_networks_with_means_and_lowest_buckets(whole):
    drawing = draw("10", whole)
    cells = [value for (setting, _), value in METRICS["pafl"][IG].items() if setting.startswith("simple")]
    for part, times in (("vgg16", 0.6), ("alexnet", 0.7)):
        rows = rows_of(drawing, condition=part, group="simple", join="mean")
        assert rows[IG]["value"] == pytest.approx(times * np.mean(cells) / 2)
        lowest = rows_of(drawing, condition=part, group="simple", join="min")
        assert lowest[IG]["value"] == pytest.approx(times * min(cells) / 2)
    order = [one["value"] for one in drawing.charts[0].option["yAxis"][0]["data"]]
    place = order.index("integrated_gradients (IG)")
    item = next(one["value"] for one in drawn(drawing.charts[0], "simple, mean") if one["value"][1] == place)
    assert item == [round(100 * 0.6 * np.mean(cells) / 2, 1), place, 53]


def test_the_papers_values_of_other_conditions(whole):
    """smerf.md 7.5."""
    told = {
        "10": [("vgg16", "piou", "simple", "mean", 0.53), ("alexnet", "piou", "complex", "mean", 0.395)],
        "11": [("robust", "piou", "simple", "min", 0.07), ("black", "piou", "complex", "mean", 0.36)],
        "12": [("natural", "pafl", "simple", "min", 0.09), ("natural", "pafl", "complex", "min", 0.01),
               ("black", "pafl", "simple", "min", 0.43)],
        "26": [("alexnet", "pafl", "simple", "mean", 0.58), ("alexnet", "piou", "simple", "mean", 0.525)],
        "27": [("vgg16", "pafl", "complex", "min", 0.065)],
        "28": [("robust", "pafl", "complex", "mean", 0.52), ("black", "pafl", "simple", "mean", 0.63)],
        "33b": [("natural", "pafl", "simple", "min", 0.09)],
    }  # fmt: skip
    for name, values in told.items():
        for which, metric, group, join, value in values:
            rows = rows_of(draw(name, whole), condition=which, metric=metric, group=group, join=join)
            assert rows[IG]["paper"] == value, (name, which, metric, group, join)
    black = rows_of(draw("12", whole), condition="black", group="complex")
    assert np.isnan(black[IG]["paper"])  # theirs has three settings of five
    assert all(np.isnan(row["paper"]) for row in rows_of(draw("29", whole)).values())  # none on noise


def test_diamonds_stand_at_the_papers_values_in_the_colour_of_their_marks(whole):
    (chart,) = draw("11", whole).charts
    place = [one["value"] for one in chart.option["yAxis"][0]["data"]].index("integrated_gradients (IG)")
    diamonds = [one for one in chart.option["series"] if one["name"] == "the paper" and one["xAxisIndex"] == 0]
    found = {one["itemStyle"]["borderColor"]: [x for x, row in one["data"] if row == place] for one in diamonds[:2]}
    assert found == {"@own": [59], "@primary": [56.5]}


def test_robust_models_stand_beside_plain_ones(whole):
    drawing = draw("28", whole)
    complex_ = [value for (setting, _), value in METRICS["pafl"][IG].items() if setting.startswith("complex")]
    for which, times in (("robust", 0.5), ("black", 1.0)):
        rows = rows_of(drawing, condition=which, group="complex", join="mean")
        assert rows[IG]["value"] == pytest.approx(times * np.mean(complex_))


def test_overlap_in_the_place_of_focus(whole):
    values = [value / 2 for (setting, _), value in METRICS["pafl"][IG].items() if setting.startswith("simple")]
    row = rows_of(draw("17a", whole), metric="piou", group="simple")[IG]
    assert [row["value"], row["high"]] == pytest.approx([np.mean(values), np.mean(values) + np.std(values)])
    assert row["paper"] == 0.565
    assert rows_of(draw("17a", whole), metric="siou", group="simple-fr: letter")[IG]["value"] == pytest.approx(0.15)
    assert rows_of(draw("17b", whole), metric="piou", group="simple-fr: 1 object")[IG]["value"] == pytest.approx(0.45)
    assert rows_of(draw("18a", whole), metric="piou", group="complex-cr2: Box1")[IG]["value"] == pytest.approx(0.2)
    assert rows_of(draw("18b", whole), group="complex", join="min")[IG]["value"] == pytest.approx(0.175)
    assert rows_of(draw("18b", whole), group="complex", join="min")[IG]["paper"] == 0.045
    assert stored("piou", "simple-fr: 3 objects", "mean", EPS) == 0.79


def test_other_backgrounds_are_the_same_figures(whole):
    assert rows_of(draw("29", whole), metric="pafl", group="simple")[IG]["value"] == pytest.approx(0.9 * 0.7)
    assert rows_of(draw("32", whole), metric="pafl", group="simple")[IG]["value"] == pytest.approx(0.8 * 0.7)
    assert rows_of(draw("30b", whole), group="complex")[IG]["value"] == pytest.approx(0.9 * 0.35)
    assert rows_of(draw("33a", whole), metric="safl", group="complex-cr2: Box1")[IG]["value"] == pytest.approx(0.4)
    assert "three of five" not in draw("33b", whole).note


def test_kinds_of_image_of_the_other_complex_settings(whole):
    drawing = draw("22", whole)
    assert [chart.title.partition(":")[0] for chart in drawing.charts] == [CR1]  # the others have no rows
    assert rows_of(drawing, metric="safl", group="complex-cr1: letter + Box1")[IG]["value"] == pytest.approx(0.45)
    assert stored("pafl", "complex-cr3: A + both boxes", "mean", IG) == 0.535
    assert stored("pafl", "complex-cr4: B + Box2", "mean", EPS) == 0.21
    assert stored("safl", "complex-fr: letter", "mean", EPS) == 0.9


def test_attribution_per_pixel_in_buckets_with_both_kinds(whole):
    (chart,) = draw("23", whole).charts
    rows = {(row["method"], row["setting"], row["shows"]): row for row in chart.rows}
    assert len(rows) == 3 * 3
    assert rows[IG, FR, "A + Box1"]["pmafl"] == pytest.approx(0.007)
    assert rows[IG, FR, "A + Box1"]["smafl"] == pytest.approx(0.002)
    cells = {cell["name"].partition(":")[0]: cell for cell in chart.option["series"][0]["data"]}
    assert cells[f"{IG}, {FR}, A + Box1"]["label"]["formatter"] == "3.5"
    assert cells[f"{IG}, {FR}, A + Box1"]["value"][2] == pytest.approx(7 / 9, abs=1e-4)
    assert cells[f"gradient, {FR}, A + Box1"]["label"] == {"formatter": "0.7", "color": "@ink", "fontWeight": 700}
    assert cells[f"oracle, {FR}, A + Box1"]["label"]["formatter"] == "∞"
    assert "2 of 9 cells are orange" in draw("23", whole).note


def test_maps_come_from_the_lowest_bucket(whole):
    drawing = draw("19", whole)
    assert [(row["method"], row["bucket"], row["bucket_mean"]) for row in drawing.rows] == [
        (IG, "11", pytest.approx(0.6)), ("gradient", "11", pytest.approx(0.1)),
    ]  # fmt: skip
    assert drawing.html.count("<img") == 3  # one image for both
    assert draw("21", whole) is None  # no thumbnails of complex-cr2


def test_maps_of_other_methods_through_every_model(whole):
    html = draw("25", whole).html
    assert html.count("map of gradient") == 4
    assert "integrated" not in html


def test_images_with_label_and_prediction(whole):
    drawing = draw("13", whole)
    assert [row["shows"] for row in drawing.rows if row["setting"] == FR] == ["A + Box1", "A + Box1 + Box2"]
    assert drawing.html.count("predicted&nbsp;1") == 4
    assert 'class="fails"' not in drawing.html


def test_a_wrong_prediction_is_marked(tmp_path):
    found = study(tmp_path, ["black"])
    path = tmp_path / "black" / "thumbs" / FR / "scene.npz"
    with np.load(path) as kept:
        arrays = {key: kept[key] for key in kept.files} | {"targets": np.array([0, 1])}
    np.savez(path, **arrays)
    assert draw("13", found).html.count('class="fails"') == 1


def test_photographs_are_shown_in_colour(tmp_path):
    found = study(tmp_path, ["natural"])
    path = tmp_path / "natural" / "thumbs" / FR / "scene.npz"
    with np.load(path) as kept:
        arrays = {key: kept[key] for key in kept.files}
    colours = np.random.default_rng(0).integers(0, 255, (2, 64, 64, 3), dtype=np.uint8)
    np.savez(path, **arrays | {"images": colours})
    html = draw("31", found).html
    assert html.count("data:image/jpeg") == 2
    assert html.count("data:image/png") == 2


def test_overlap_against_the_number_of_pixels(whole):
    drawing = draw("15", whole)
    rows = {(row["name"], row["at"]): row for row in drawing.charts[0].rows}
    assert rows["integrated_gradients (IG)", 400]["value"] == pytest.approx(0.6)
    assert rows["gradient (G)", 100]["value"] == pytest.approx(0.4)
    assert rows["integrated_gradients (IG)", 185]["paper"] == 0.445  # smerf.md 5.4
    assert np.isnan(rows["gradient (G)", 100]["paper"])
    assert "Which method is first depends on K" in drawing.note
    assert drawing.note.startswith("Mean PIOU of complex-cr1, bucket 9 (B and Box1, where the B decides)")
    assert draw("15", Study(whole.folder / "elsewhere", "small", whole.runs)) is None


def test_toys_are_computed_and_agree_with_the_paper(whole):
    """smerf.md 5.6."""
    (chart,) = draw("14", whole).charts
    assert {row["metric"]: round(row["value"], 4) for row in chart.rows} == {
        "pafl": 0.7554, "safl": 0.2446, "piou": 1, "siou": 0,
    }  # fmt: skip
    rows = [row for chart in draw("16", whole).charts for row in chart.rows]
    known = [row for row in rows if not math.isnan(row["paper"])]
    assert len(known) == 2 * 2 * 11 + 2
    assert all(abs(row["value"] - row["paper"]) < 6e-4 for row in known)
    assert toy_scores(0.9, 0.8)["pafl"] == pytest.approx(247 / 297)


def test_the_authors_definition_is_drawn_where_there_is_one(tmp_path, whole):
    assert "definition authors, as here" in draw("11", whole).note
    assert seen(study(tmp_path, ["black"], "clean"), "black").definition == "clean"
    assert "By the definition authors." in draw("29", whole).note


def test_other_methods_than_the_papers_are_left_out(tmp_path):
    more = metrics()
    for metric, some in more.items():
        more[metric] = some | {"integrated_gradients": some[IG], "random": some[IG]}
    view = toy(tmp_path / "black", more, definition="authors")
    assert sorted(seen(Study(tmp_path, "small", {"black": view.run}), "black").methods) == ["gradient", IG, "oracle"]


def test_a_run_is_known_by_what_was_asked(tmp_path):
    asked = {
        "black": {}, "natural": {"background": "natural(folder=mine)"}, "vgg16": {"arch": "vgg16(frozen=true)"},
        "robust": {"robust": True}, "": {"robust": True, "background": "noise"},
    }  # fmt: skip
    for wanted, request in asked.items():
        assert condition(toy(tmp_path / (wanted or "both"), {"pafl": PAFL}, **request).run) == wanted


def test_every_value_of_the_paper_belongs_to_a_part_or_a_toy():
    assert all(paper(part) for part in (*CONDITIONS, "toy", "one map") if part != "noise")
    assert not paper("noise")
    for part in CONDITIONS:
        assert {method for *_, method in paper(part)} <= set(SMERF)


def test_groups_are_folded_away_and_every_figure_is_on_the_page(whole):
    from dataclasses import replace

    from saliometer.report import bench
    from saliometer.report.page import page

    run = whole.runs["black"]
    run.manifest["models"] = {}
    found = all_drawn("smerf", whole)
    html = page(replace(bench.book(run), figures=found))
    assert all(f'id="{one.id}"' in html for one in found)
    assert html.count("<details><summary>Overlap: simple reasoning; Overlap by the number of objects;") == 1
    assert isinstance(whole.sweep, pa.Table)
