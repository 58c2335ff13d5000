"""`saliometer reproduce smerf` from end to end: the shipped models, few methods, and models of noise that are given."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from starlette.testclient import TestClient
from typer.testing import CliRunner, Result

from saliometer.cli import app
from saliometer.engine import shipped
from saliometer.engine.presets import SMERF
from saliometer.engine.run import opened as open_run
from saliometer.report import study as report
from saliometer.report import study_smerf
from saliometer.report.book import Book
from saliometer.serve.app import app_of
from saliometer.studies import _smerf_models, smerf
from saliometer.studies._smerf_models import condition_of, lacking, train_missing, why_missing
from saliometer.studies._smerf_study import Study, opened
from saliometer.studies._smerf_sweep import KS, overlap
from saliometer.studies.smerf import Scale, reproduce
from saliometer.tasks.textbox import SETTINGS, textbox
from saliometer.types import PRIMARY

FEW = {"G": "gradient", "I*G": "input_x_gradient", "D-SHAP": "deep_shap(count=10)", "Edge": SMERF["Edge"]}
SHOWN = {*FEW.values(), "oracle", "random", "centre", "fake_cam"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A tiny scale of four methods, and a folder of models for noise: the plain ones under another name."""
    folder = tmp_path_factory.mktemp("smerf")
    (folder / "models").mkdir()
    for setting in SETTINGS:
        card = shipped.card(setting) | {"background": "noise"}
        (folder / "models" / f"{setting}.noise.json").write_text(json.dumps(card))
        shutil.copy(shipped.FOLDER / f"{setting}.safetensors", folder / "models" / f"{setting}.noise.safetensors")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smerf, "SCALES", {"tiny": Scale(1, 10, 2), "other": Scale(1, 10, 2)})
        patch.setattr(smerf, "with_references", lambda count: FEW)
        yield folder


def rerun(place: Path, out: str = "run", **more: object) -> Study:
    return reproduce(place / out, "tiny", models=place / "models", device="cpu", **more)


@pytest.fixture(scope="module")
def watched() -> list[tuple[float, str]]:
    """What progress was told while the study ran."""
    return []


@pytest.fixture(scope="module")
def study(place: Path, watched: list[tuple[float, str]]) -> Study:
    found = rerun(place, watch=lambda share, text: watched.append((share, text)))
    found.write()
    return found


@pytest.fixture(scope="module")
def book(study: Study) -> Book:
    return report.book(study.folder)


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def values(study: Study) -> list[tuple]:
    tables = [study.rows("black"), study.rows("noise"), study.identified, study.sweep]
    names = ("setting", "model", "method", "metric", "definition", "condition", "sample", "value")
    rows = [tuple(row[name] for name in names) for table in tables for row in table.to_pylist()]
    return sorted((*row[:-1], repr(row[-1])) for row in rows)


def test_every_part_that_has_models_is_run(study):
    assert not study.failed
    assert list(study.runs) == ["black", "noise"]
    for part in study.runs:
        rows = study.rows(part)
        assert set(rows["method"].unique().to_pylist()) == SHOWN
        assert set(rows["definition"].unique().to_pylist()) >= {"clean", "clean_positive", "authors"}
        assert set(rows["setting"].unique().to_pylist()) == set(SETTINGS)
    assert set(study.rows("noise")["model"].unique().to_pylist()) == {
        "simple_cnn(background=noise,seed=0)",
        "complex_cnn(background=noise,seed=0)",
    }
    assert set(study.missing) == {"natural", "alexnet", "vgg16", "robust"}
    assert "lacks its models of simple-fr, " in study.missing["alexnet"]
    assert "`saliometer train textbox --arch alexnet --out DIR`" in study.missing["alexnet"]
    assert study.told is not None
    assert set(study.told.methods) == SHOWN


def test_pixels_are_swept_for_every_method(study):
    rows = study.sweep.to_pylist()
    assert {row["condition"] for row in rows} == {f"k({k})" for k in KS}
    assert {row["method"] for row in rows} == SHOWN
    assert {(row["setting"], row["bucket"], row["metric"]) for row in rows} == {("complex-cr1", "9", "piou")}
    oracle = {r["condition"]: r["value"] for r in rows if (r["method"], r["definition"]) == ("oracle", "clean")}
    assert oracle["k(100)"] == pytest.approx(100 / 247)  # the letter B has 247 pixels
    assert oracle["k(400)"] == pytest.approx(247 / 400)


def test_overlap_counts_the_exact_top_pixels():
    samples = textbox("complex-cr1", count=10)
    truth = samples.region(PRIMARY, "box").double()
    ramp = truth * 2 + torch.linspace(0, 1, truth[0].numel(), dtype=torch.float64).view(1, *truth.shape[1:])
    sizes = truth.sum((1, 2))
    for k in (100, 400):
        hit = sizes.clamp(max=k)
        torch.testing.assert_close(overlap(ramp, samples, k), hit / (sizes + k - hit))


def test_all_claims_are_judged_and_written(study):
    claims = study.claims()
    assert [claim["id"] for claim in claims] == list(range(1, 30))
    told = json.loads((study.folder / "claims.json").read_text())
    names = ["id", "text", "paper", "ours", "holds", "why"]
    assert told == {"claims": [{name: claim[name] for name in names} for claim in claims]}
    assert all(list(claim) == names for claim in told["claims"])
    assert all(claim["why"] for claim in claims if claim["holds"] is None)
    assert claims[0]["holds"] is True
    assert "simple-fr 1.000" in claims[0]["ours"]
    assert claims[23]["why"].startswith("the run lacks smooth_grad(")
    assert claims[4 - 1]["holds"] is None


def test_tables_hold_every_part(study):
    text = (study.folder / "tables.md").read_text()
    assert "| D-SHAP | paper |" in text
    assert "| noise | G |" in text
    assert "chance 14.3" in text
    assert "| K | 100 | 142 |" in text
    assert text.count("| 29 | ") == 1


def test_the_report_holds_claims_figures_and_parts(book):
    assert {one.figure.name for one in book.figures} >= {"smerf_2", "identifiability", "smerf_15", "smerf_29"}
    assert book.kind == "smerf"
    assert len(book.claims) == 29
    assert str(book.verdict[0]).startswith("Of 29 claims of Kim, Plumb and Talwalkar, ")
    assert len(book.verdict) == 2
    assert dict(book.facts)["D-SHAP"] == "deep_shap(count=10); the paper compares with 1000 images"
    parts = dict(book.provenance)["Parts"]
    assert parts[0].startswith("black: 72 images, 7 models, ")
    assert parts[3].startswith("alexnet: not run; ")


def test_the_verdict_says_what_the_perfect_map_loses(study):
    said = study_smerf.drop(study)
    rows = study.rows("black").to_pylist()

    def mean(method, group):
        cells: dict[tuple, list[float]] = {}
        for row in rows:
            asked = (row["metric"], row["definition"], row["method"]) == ("pafl", "authors", method)
            if asked and row["setting"].startswith(group) and row["value"] == row["value"]:
                cells.setdefault((row["setting"], row["bucket"]), []).append(row["value"])
        return sum(sum(some) / len(some) for some in cells.values()) / len(cells)

    one, two, high, low = (mean(m, g) for m in ("input_x_gradient", "oracle") for g in ("simple", "complex"))
    assert f"the best method, input_x_gradient, falls from {100 * one:.1f} % on simple to {100 * two:.1f} %" in said
    assert f"from {100 * high:.1f} % to {100 * low:.1f} %: {100 * (high - low) / (one - two):.0f} % of the drop" in said


def test_maps_that_never_see_a_model_are_at_chance(book):
    drawn = next(one for one in book.figures if one.figure.name == "identifiability")
    (chart,) = drawn.drawing.charts
    told = {row["method"]: row for row in chart.rows}
    assert told[SMERF["Edge"]]["value"] == pytest.approx(1 / 7)
    assert told["oracle"]["value"] == pytest.approx(15 / 28)
    assert told["oracle"]["bucket 11"] == pytest.approx(5 / 7)
    lines = {one["name"]: one["markLine"]["data"] for one in chart.option["series"] if "markLine" in one}
    assert lines == {"chance": [{"xAxis": 14.3}], "ceiling (the oracle)": [{"xAxis": 53.6}]}


def test_the_same_call_runs_nothing_again(study, place, monkeypatch):
    known = values(study)
    for name in ("engine.bench.one_unit", "engine.identify._one_unit", "studies._smerf_sweep._swept"):
        monkeypatch.setattr(f"saliometer.{name}", lambda *args: pytest.fail("something was run again"))
    assert values(rerun(place)) == known


def test_what_is_missing_is_done_and_the_rest_stays(study, place):
    shutil.copytree(study.folder, place / "stopped")
    shutil.rmtree(place / "stopped" / "noise" / "rows" / "complex-cr1")
    shutil.rmtree(place / "stopped" / "identify")
    (place / "stopped" / "sweep.parquet").unlink()
    passes = open_run(place / "stopped" / "black").manifest["passes"]
    assert values(rerun(place, "stopped")) == values(study)
    assert open_run(place / "stopped" / "black").manifest["passes"] == passes


def test_progress_goes_from_nothing_to_all_and_never_back(study, watched):
    shares = [share for share, _ in watched]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.1
    assert shares[-1] == pytest.approx(1.0)
    parts = list(dict.fromkeys(text.partition(":")[0] for _, text in watched))
    assert parts == ["black", "other K, complex-cr1 bucket 9", "identify", "noise"]


def test_the_command_prints_claims_as_json_and_show_report_and_serve_know_it(study, place):
    ready = ["--scale", "tiny", "--models", place / "models", "--device", "cpu", "--out", study.folder]
    found = call("reproduce", "smerf", *ready, "--json")
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == json.loads((study.folder / "claims.json").read_text())
    told = json.loads(call("show", study.folder, "--json").stdout)
    assert (told["study"], told["scale"], len(told["claims"])) == ("smerf", "tiny", 29)
    assert {part["name"]: part["finished"] for part in told["parts"]} == dict.fromkeys(
        ("black", "identify", "noise"), True
    )
    assert "The study smerf at scale tiny." in call("show", study.folder).stdout
    text = (study.folder / "report.html").read_text(encoding="utf-8")
    assert "Sanity simulations for saliency methods, rerun" in text
    assert 'id="identifiability"' in text
    page = TestClient(app_of(place), base_url="http://127.0.0.1").get("/").text
    assert "study smerf" in page


def test_a_method_that_fails_is_named_and_the_rest_goes_on(place, monkeypatch, tmp_path):
    (tmp_path / "bad.py").write_text("def bad(model, images, targets):\n    raise ValueError('no luck')\n")
    monkeypatch.setattr(smerf, "with_references", lambda count: {"G": "gradient", "bad": f"{tmp_path}/bad.py:bad"})
    found = call("reproduce", "smerf", "--scale", "tiny", "--device", "cpu", "--out", tmp_path / "run")
    assert found.exit_code == 1
    for part in ("black", "identify", "other K, complex-cr1 bucket 9"):
        assert f"Failed: {part}: bad: ValueError: no luck" in found.stderr
    assert "Left out: noise: its models are trained by `saliometer train textbox --background noise" in found.stderr
    assert len(opened(tmp_path / "run").claims()) == 29


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["smerf", "--scale", "huge"], "there is no scale 'huge'"),
        (["smerf", "--scale", "tiny", "--models", "nowhere"], "there is no folder 'nowhere'"),
        (["smerf", "--scale", "tiny", "--images", "nowhere"], "nothing at 'nowhere'"),
        (["smerf", "--scale", "tiny", "--device", "tpu"], "tpu"),
        (["smerf", "--model", "resnet50"], "the study smerf has no --model"),
        (["zhang", "--models", "somewhere"], "the study zhang has no --models"),
    ],
)
def test_mistakes_are_told_in_one_sentence(place, words, said, tmp_path):
    found = call("reproduce", *words, "--out", tmp_path / "run")
    assert found.exit_code == 2
    assert said in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_folder_of_another_study_or_scale_is_refused(study, tmp_path):
    found = call("reproduce", "smerf", "--scale", "other", "--out", study.folder)
    assert found.exit_code == 2
    assert "holds the study smerf at scale tiny, you asked for smerf at other" in found.stderr
    (tmp_path / "study.json").write_text('{"study": "zhang", "scale": "tiny"}')
    assert (
        "holds the study zhang at scale tiny" in call("reproduce", "smerf", "--out", tmp_path, "--scale", "tiny").stderr
    )


def test_a_study_without_scores_says_what_to_run(tmp_path):
    (tmp_path / "study.json").write_text('{"study": "smerf", "scale": "smoke"}')
    found = call("report", tmp_path)
    assert found.exit_code == 2
    assert f"`saliometer reproduce smerf --scale smoke --out {tmp_path}` makes them" in found.stderr
    assert "No part of it is finished" in call("show", tmp_path).stdout


# The models of scale 'paper'


def test_what_is_missing_is_trained_and_what_ships_is_copied(monkeypatch, tmp_path):
    called: list[tuple[str, int]] = []

    def trained(setting, folder, *, condition, seed, **params):
        called.append((setting, seed))
        params["watch"](0.5, setting)
        card = shipped.card(setting) | {"seed": seed} | condition.told(setting)
        (folder / f"{condition.stem(setting, seed)}.json").write_text(json.dumps(card))
        (folder / f"{condition.stem(setting, seed)}.safetensors").touch()
        return card

    monkeypatch.setattr(_smerf_models, "trained", trained)
    black, noise, shares = condition_of("black"), condition_of("noise"), []
    assert len(lacking(black, tmp_path, (0, 1, 2))) == 21
    train_missing(black, tmp_path, (0, 1, 2), "cpu", lambda share, text: shares.append(share))
    assert called == [(setting, seed) for seed in (1, 2) for setting in SETTINGS]
    assert shares == sorted(shares)
    assert shipped.load("simple-fr", tmp_path).fingerprint == shipped.load("simple-fr").fingerprint
    assert not lacking(black, tmp_path, (0, 1, 2))
    train_missing(black, tmp_path, (0, 1, 2), "cpu", lambda share, text: None)
    assert len(called) == 14  # nothing again
    assert len(lacking(noise, tmp_path, (0,))) == 7
    train_missing(noise, tmp_path, (0,), "cpu", lambda share, text: None)
    assert why_missing(noise, tmp_path) == ""
    (tmp_path / "complex-fr.noise.safetensors").unlink()
    assert lacking(noise, tmp_path, (0,)) == [("complex-fr", 0)]


def test_a_model_that_missed_the_bar_is_tried_again_until_it_had_its_tries(tmp_path):
    for tried, left in ((1, 1), (3, 0)):
        for setting in SETTINGS:
            missed = {"background": "noise", "accepted": setting != "simple-nr", "tried": tried}
            (tmp_path / f"{setting}.noise.json").write_text(json.dumps(shipped.card(setting) | missed))
            (tmp_path / f"{setting}.noise.safetensors").touch()
        assert len(lacking(condition_of("noise"), tmp_path, (0,))) == left


def test_photographs_of_ones_own_lie_behind_natural_alone(tmp_path):
    assert condition_of("natural").background == "natural"
    assert condition_of("noise", str(tmp_path)).background == "noise"
    with pytest.raises(ValueError, match="nothing at"):
        condition_of("natural", str(tmp_path / "nowhere"))


def test_a_model_that_was_not_accepted_is_named(study):
    cards = {"black": {"simple-fr": {"accepted": False, "accuracy": 0.8}, "simple-nr": {"accepted": True}}}
    (said,) = study_smerf.unaccepted(replace(study, models=cards))
    assert said.startswith("simple-fr: a model of black that was not accepted (accuracy 0.800)")
