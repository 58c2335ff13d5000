"""The ten-methods study on a page: charts that hold the evidence's numbers, and a book over its runs."""

import json
import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from saliometer import results
from saliometer.engine.presets import ZHANG
from saliometer.report import study as report
from saliometer.report.book import Book
from saliometer.report.figures import Drawing, _zhang, figures
from saliometer.report.figures.zhang_1 import zhang_1
from saliometer.report.figures.zhang_2 import zhang_2
from saliometer.report.figures.zhang_table_1 import zhang_table_1
from saliometer.report.figures.zhang_table_2 import zhang_table_2
from saliometer.report.figures.zhang_table_3 import zhang_table_3
from saliometer.report.figures.zhang_table_4 import zhang_table_4
from saliometer.report.pack import script
from saliometer.studies._zhang_claims import CLAIMS
from saliometer.studies._zhang_evidence import FAKE, METHODS, Evidence, with_confidence
from saliometer.studies._zhang_figures import Case, confidence
from saliometer.studies._zhang_tables import paper
from saliometer.studies.zhang import Study
from zhang_toys import CONDITIONS, PIXELS, TARGETS, block, evidence, papers, printed, rows_of

DRAW = {1: zhang_table_1, 2: zhang_table_2, 3: zhang_table_3, 4: zhang_table_4}


def study_of(z: Evidence, folder: Path = Path("nowhere")) -> Study:
    return Study(folder, "quick", z.rows, z, {})


def drawn(draw: Any, z: Evidence) -> Drawing:
    found = draw(study_of(z))
    assert found is not None
    return found


def control(metric: str, name: str, values: list[float]) -> Any:
    """Rows of a control, which the paper does not have."""
    table = block(metric, "IG", values)
    return results.block(
        {key: table[key][0].as_py() for key in results.COLUMNS if key not in ("sample", "bucket", "value", "note")}
        | {"method": name},
        table["sample"].to_pylist(), [""] * len(values), np.array(values), [""] * len(values),
    )  # fmt: skip


def panel(option: dict[str, Any], metric: str) -> dict[str, list[dict[str, Any]]]:
    """A metric's series by name."""
    (place,) = (i for i, axis in enumerate(option["xAxis"]) if axis["name"].split(" ")[0] == metric)
    found: dict[str, list[dict[str, Any]]] = {}
    for series in option["series"]:
        if series["xAxisIndex"] == place:
            assert series["yAxisIndex"] == place
            found.setdefault(series["name"], []).append(series)
    return found


def by_method(option: dict[str, Any], series: dict[str, Any], lines: int = 1) -> dict[str, float]:
    names = [name for name in option["yAxis"][0]["data"] if name]
    return {names[item["value"][1] // lines]: item["value"][0] for item in series["data"]}


# Tables


@pytest.mark.parametrize("number", DRAW)
def test_rows_hold_every_number_of_a_table_and_the_papers(number):
    drawing = drawn(DRAW[number], evidence([printed()]))
    rows = [row for chart in drawing.charts for row in chart.rows]
    wanted = {cell[1:]: value for cell, value in paper().items() if cell[0] == number}
    assert {(row["condition"], row["method"], row["metric"]): row["paper"] for row in rows} == wanted
    for row in rows:
        assert row["table"] == f"Table {number}"
        assert row["low"] <= row["ours"] <= row["high"]
        where = ("label", CONDITIONS[row["condition"]]) if number == 4 else (TARGETS[row["condition"]], "")
        assert row["ours"] == pytest.approx(papers()[row["metric"], row["method"], *where], abs=1e-3)


def test_a_panel_shows_ours_with_its_interval_and_the_papers_beside_it():
    z = evidence([block("insertion", m, [0.1 + place / 20, 0.3 + place / 20]) for place, m in enumerate(METHODS)])
    (chart,) = drawn(zhang_table_1, z).charts
    assert [axis["name"] for axis in chart.option["xAxis"]] == ["I ↑"]
    found = panel(chart.option, "I")
    dots, whiskers = found["ours"]
    ours = {name: 20 + 5 * place for place, name in enumerate(METHODS)}
    assert by_method(chart.option, dots) == pytest.approx(ours)
    assert list(by_method(chart.option, dots)) == METHODS
    assert whiskers["renderItem"] == "whisker"
    for place, item in enumerate(whiskers["data"]):
        assert item == pytest.approx([place, 20 + 5 * place, 10 + 5 * place, 30 + 5 * place])  # of two images
    (diamonds,) = found["paper"]
    assert by_method(chart.option, diamonds) == {m: paper()[1, "ground_truth", m, "I"] for m in METHODS}
    assert dots["data"][4]["name"] == "Grad-CAM, I: 40 [30, 50]; paper 66.8"


def test_controls_stand_below_the_methods_in_a_series_of_their_own():
    blocks = [block("insertion", m, [0.5, 0.7]) for m in METHODS]
    z = evidence([*blocks, control("insertion", "edge", [0.2, 0.4]), control("insertion", "random", [0.1, 0.1])])
    (chart,) = drawn(zhang_table_1, z).charts
    assert chart.option["yAxis"][0]["data"] == [*METHODS, "random", "edge"]
    found = panel(chart.option, "I")
    assert by_method(chart.option, found["control"][0]) == pytest.approx({"random": 10, "edge": 30})
    assert set(by_method(chart.option, found["ours"][0])) == set(METHODS)
    assert {row["method"]: row["paper"] for row in chart.rows if row["method"] in ("random", "edge")} == {
        "random": None, "edge": None,
    }  # fmt: skip
    assert [one["name"] for one in chart.option["legend"]["data"]] == ["ours", "paper", "control"]


def test_target_classes_have_lines_of_their_own():
    (chart,) = drawn(zhang_table_2, evidence([printed()])).charts
    found = panel(chart.option, "AI")
    names = {"label": "ground_truth", "predicted": "predicted", "least": "least_probable"}
    for lane, (name, condition) in enumerate(names.items()):
        dots = found[name][0]
        wanted = {m: paper()[2, condition, m, "AI"] for m in METHODS}
        assert by_method(chart.option, dots, lines=4) == pytest.approx(wanted, abs=1e-3)
        assert {item["value"][1] % 4 for item in dots["data"]} == {lane + 1}
    labels = chart.option["yAxis"][0]["data"]
    assert labels[:6] == ["", "", FAKE, "", "", ""]
    (diamonds,) = found["paper"]
    assert len(diamonds["data"]) == 30
    rules = found["label"][0]["markLine"]["data"]
    assert [rule["yAxis"] for rule in rules] == list(range(0, 40, 4))  # the empty lines


def test_transforms_have_charts_of_their_own():
    charts = drawn(zhang_table_4, evidence([printed()])).charts
    assert [chart.title for chart in charts] == ["MixUp", "Resize", "Rotation", "Crop"]
    for chart, condition in zip(charts, ("mixup", "resize", "rotation", "crop"), strict=True):
        (dots, _) = panel(chart.option, "I")["ours"]
        wanted = {m: paper()[4, condition, m, "I"] for m in METHODS}
        assert by_method(chart.option, dots) == pytest.approx(wanted, abs=1e-3)


def test_what_was_not_run_is_said():
    shaken = ("max_sensitivity", "avg_sensitivity")
    rows = printed().filter([name.as_py() not in shaken for name in printed()["metric"]])
    drawing = drawn(zhang_table_3, evidence([rows]))
    assert [axis["name"] for axis in drawing.charts[0].option["xAxis"]] == ["Sparseness ↑", "Complexity ↓", "EC ↓"]
    assert str(drawing.note).endswith("Not run: MS, AS.")
    without = evidence(rows_of(keep=lambda cell: cell[3] not in ("rotation(degrees=45)", "crop(area=0.8)")))
    drawing = drawn(zhang_table_4, without)
    assert [chart.title for chart in drawing.charts] == ["MixUp", "Resize"]
    assert str(drawing.note).endswith("Not run: Rotation, Crop.")
    assert "Not run" not in drawn(zhang_table_1, without).note


def test_a_method_that_is_missing_leaves_its_line_empty():
    z = evidence([block("insertion", m, [0.5, 0.7]) for m in METHODS if m != "IG"])
    (chart,) = drawn(zhang_table_1, z).charts
    assert chart.option["yAxis"][0]["data"] == METHODS
    dots, _ = panel(chart.option, "I")["ours"]
    assert set(by_method(chart.option, dots)) == set(METHODS) - {"IG"}


def test_figures_are_none_without_evidence():
    nothing = study_of(Evidence(results.SCHEMA.empty_table(), PIXELS, True))
    for one in figures("zhang"):
        assert one.draw(nothing) is None, one.name
    label = evidence(rows_of(keep=lambda cell: cell[2] == "label" and not cell[3]))
    assert zhang_table_2(study_of(label)) is None  # Table 1 shows it
    assert zhang_table_4(study_of(label)) is None
    assert zhang_2(study_of(label)) is None


def test_panels_fit_their_charts():
    """Two in a row on a phone, where charts are taller; nothing overlaps or lies outside."""
    for draw in DRAW.values():
        drawing = drawn(draw, evidence([printed()]))
        tall = [int(height) for height in re.findall(r"height: (\d+)px", drawing.html)]
        for chart, phone in zip(drawing.charts, tall, strict=True):
            narrow, wide = chart.option["media"]
            for layout, height, across in ((wide, chart.height, None), (narrow, phone, 2)):
                grids = layout["option"]["grid"]
                corners = {(grid["left"], grid["top"]) for grid in grids}
                assert len(corners) == len(grids) == len(chart.option["xAxis"])
                assert max(grid["top"] + grid["height"] for grid in grids) <= height
                assert all(float(g["left"][:-1]) + float(g["width"][:-1]) <= 100 for g in grids)
                if across:
                    assert len({grid["left"] for grid in grids}) == across
            script(chart.option)  # plain JSON


# Figures


def confident() -> Evidence:
    """AG rises with p, drop and deletion fall with it for one method and rise for the others."""
    p = np.linspace(0.1, 0.9, 20)
    blocks = [block("probability", m, p) for m in METHODS]
    blocks += [block("average_gain", m, p) for m in METHODS]
    blocks += [block("average_drop", m, -p if m == "RISE" else p) for m in METHODS]
    return evidence(blocks)


def test_confidence_is_drawn_as_correlations():
    (chart,) = drawn(zhang_2, confident()).charts
    assert [axis["name"] for axis in chart.option["xAxis"]] == ["AG", "AD"]
    dots, _ = panel(chart.option, "AD")["ours"]
    assert by_method(chart.option, dots) == pytest.approx({m: -1.0 if m == "RISE" else 1.0 for m in METHODS})
    assert all(axis["min"] == -1 and axis["max"] == 1 for axis in chart.option["xAxis"])
    assert [line["xAxis"] for line in dots["markLine"]["data"]] == [0]
    assert "paper" not in panel(chart.option, "AD")


def test_confidence_has_the_interval_of_its_resamples():
    rng = np.random.default_rng(0)
    p, score = rng.random((2, 30))
    z = evidence([*(block("probability", m, p) for m in METHODS), block("insertion", "IBA", score)])
    (found,) = confidence(z)
    rho = with_confidence(z, "I", "IBA")
    low, high = np.percentile(rho[1:], [2.5, 97.5])
    assert (found.method, found.metric) == ("IBA", "I")
    assert (found.ours, found.low, found.high) == pytest.approx((rho[0], low, high))


def test_pictures_show_the_method_and_others_beside_it():
    shades = np.linspace(0, 1, 16).reshape(4, 4)
    photo = np.full((8, 8, 3), 200, np.uint8)
    maps = {"GuidedBP": shades, "IG": shades.T}
    some = [
        Case("AD_bar", "best", "GuidedBP", "highest", 98.76, "<dog>.png", photo, maps),
        Case("AD_bar", "worst", "IG", "lowest", 0.0, "<dog>.png", photo, {"IG": shades}),
    ]
    drawing = zhang_1(SimpleNamespace(cases=lambda: some))
    assert drawing is not None
    assert "AD-bar: best GuidedBP, worst IG" in drawing.html
    assert "<b>GuidedBP</b>, best mean; highest score, 98.8: &lt;dog&gt;.png" in drawing.html
    assert len(re.findall(r"url\(data:image/jpeg", drawing.html)) == 1  # one photograph, shown five times
    assert drawing.html.count('class="photo-0"') == 5
    assert len(re.findall('<span class="own">', drawing.html)) == 2
    first = re.search(r"data:image/png;base64,([^\"]+)", drawing.html)
    assert first is not None
    with Image.open(BytesIO(b64decode(first[1]))) as picture:
        seen = np.asarray(picture.convert("RGBA")).astype(int)
    assert seen[0, 0].tolist() == [0, 0, 4, 180]
    assert seen[-1, -1].tolist() == [252, 255, 164, 180]


# Claims and the book


def test_every_claim_names_a_figure_of_the_page_or_none():
    known = {one.name for one in figures("zhang")}
    named = {claim.number: claim.figure for claim in CLAIMS}
    assert set(named.values()) == {*known, ""}
    assert [number for number, name in named.items() if not name] == [14, 21, 22]
    assert (named[1], named[10], named[15], named[18]) == tuple(f"zhang_table_{number}" for number in (1, 2, 3, 4))


def claims(**holds: bool | None) -> list[dict[str, Any]]:
    return [{"id": int(name[1:]), "text": f"text {name[1:]}", "holds": value} for name, value in holds.items()]


def test_the_verdict_counts_claims_and_names_the_most_telling_failure():
    said = report._verdict(claims(c4=False, c9=False, c23=False, c1=True, c2=None), "paper")
    assert said == [
        "Of 5 claims of and about Zhang, Torres and Hermanns, 1 hold here, 3 fail and 1 stay open.",
        "The most telling one that fails is claim 23: “text 23”.",
    ]
    assert "claim 9" in report._verdict(claims(c4=False, c9=False), "paper")[1]
    assert "claim 4" in report._verdict(claims(c5=False, c4=False), "paper")[1]
    assert len(report._verdict(claims(c1=True), "paper")) == 1
    assert "“quick”" in report._verdict(claims(c1=True), "quick")[1]


def test_a_study_without_the_labels_run_says_so(tmp_path):
    (tmp_path / "study.json").write_text(
        json.dumps({"study": "zhang", "scale": "smoke", "labelled": True, "pixels": PIXELS})
    )
    with pytest.raises(ValueError, match=r"no run 'label'.*saliometer reproduce zhang --scale smoke"):
        report.book(tmp_path)
    with pytest.raises(ValueError, match="no readable study in"):
        report.book(tmp_path / "other")


def test_the_book_starts_from_the_labels_run(tmp_path, monkeypatch):
    z = evidence(rows_of(keep=lambda cell: not cell[3]))
    manifest = {"request": {"count": 4}, "passes": 1234}
    for name in ("label", "least"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    monkeypatch.setattr(report, "opened", lambda folder: SimpleNamespace(folder=folder, manifest=manifest))
    monkeypatch.setattr("saliometer.studies._zhang_figures._sprites", lambda folder: {})
    monkeypatch.setattr(report.zhang, "finished", lambda run: run.folder.name == "label")
    label = Book("audit", "label", "An audit", "then", ["fine"], [("Model", "x")], [], [], [], None, [("Seed", ["0"])])
    monkeypatch.setattr(report.audit, "book", lambda run: label)
    book = report.of_study(study_of(z, tmp_path))
    assert (book.kind, book.name, book.created) == ("zhang", tmp_path.name, "then")
    assert [one.id for one in book.figures] == ["zhang_table_1", "zhang_table_2", "zhang_table_3"]
    assert len(book.claims) == 25
    figures_of = {claim["id"]: claim["figure"] for claim in book.claims}
    assert figures_of[1] == "zhang_table_1"
    assert figures_of[16] == figures_of[12] == ""  # no transforms, no confidence: nothing is drawn
    holds = [claim["holds"] for claim in book.claims]
    counts = f"{holds.count(True)} hold here, {holds.count(False)} fail and {holds.count(None)} stay open"
    assert counts in book.verdict[0]
    provenance = dict(book.provenance)
    assert provenance["Scale"] == ["quick"]
    assert provenance["Parts"] == [
        "label: 4 images, 1,234 passes", "least: 4 images, 1,234 passes; not finished, so left out"
    ]  # fmt: skip
    assert provenance["Seed"] == ["0"]
    assert ("Model", "x") in book.facts


def test_metrics_are_explained():
    drawing = drawn(zhang_table_1, evidence([printed()]))
    assert "<b>AD-bar</b>: how much of the probability is left then, in percent." in drawing.html
    assert set(_zhang.MEANING) == {metric for *_, metric in paper()}
    assert set(ZHANG) == set(METHODS)
