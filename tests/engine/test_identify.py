"""The same images through the seven models: the oracle's accuracies are those of the protocol, to the last digit."""

import json
import shutil
from fractions import Fraction

import numpy as np
import pyarrow.compute as pc
import pytest
import torch
from scipy import stats
from typer.testing import CliRunner

from saliometer import identify
from saliometer.cli import app
from saliometer.engine.identify import Asking, shares
from saliometer.engine.run import Unit, opened
from saliometer.engine.shipped import FOLDER
from saliometer.identifiability import identifiability
from saliometer.report.facts import progress
from saliometer.report.figures.identifiability import identifiability as drawn_of
from saliometer.show_identify import as_dict, show
from saliometer.studies._smerf_study import Study
from saliometer.studies._smerf_tables import identified
from saliometer.tasks.textbox import SETTINGS, seen_as, textbox
from saliometer.types import PRIMARY

CEILING = {"2": 2, "3": 2, "5": 4, "6": 4, "8": 4, "9": 4, "11": 5, "12": 5}  # sevenths, smerf.md 5.7


def one_class(model, images, targets):
    """The first logit's gradient: what a user's own method may be."""
    images = images.requires_grad_()
    return torch.autograd.grad(model(images)[:, 0].sum(), images)[0]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return identify({"one_class": one_class}, per_bucket=4, device="cpu", out=tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module", autouse=True)
def _few_methods():
    """Beside a user's method the quick ones would run: here the controls are enough."""
    patch = pytest.MonkeyPatch()
    patch.setattr("saliometer.engine.resolve.QUICK", 0)
    yield
    patch.undo()


def test_the_oracle_gets_the_ceiling_exactly(found):
    cells = found.table()["oracle"]
    for bucket, sevenths in CEILING.items():
        assert Fraction(cells[bucket].value).limit_denominator(1000) == Fraction(sevenths, 7)
        assert cells[bucket].low == pytest.approx(cells[bucket].value) == cells[bucket].high
    assert Fraction(cells["mean"].value).limit_denominator(1000) == Fraction(15, 28)


def test_maps_that_never_see_the_model_are_at_chance(found):
    cells = found.table()
    assert cells["edge"]["mean"].value == pytest.approx(1 / 7)  # the same for all seven, to the bit
    random = np.array([cells["random"][bucket].value for bucket in CEILING])
    assert random.mean() == pytest.approx(1 / 7, abs=4 * np.sqrt(6 / 49 / (8 * 4 * 7)))
    assert random.std() > 0  # noise of its own for every model


def test_every_model_is_shown_the_same_images_and_explained_by_its_own_rule():
    asking = Asking(per_bucket=2)
    shown = {s: asking.samples(Unit(s, 0, 16), torch.device("cpu")) for s in SETTINGS}
    first = shown["simple-fr"]
    assert [first.buckets.count(bucket) for bucket in CEILING] == [2] * 8
    for setting, samples in shown.items():
        assert torch.equal(samples.batch.images, first.batch.images)
        assert samples.ids == first.ids
        wanted = {b: (label, roles) for b, label, roles in _said(textbox(setting, count=24))}
        assert all((label, roles) == wanted[bucket] for bucket, label, roles in _said(samples))


def _said(samples):
    return zip(samples.buckets, samples.labels.tolist(), samples.roles.tolist(), strict=True)


def test_an_image_a_setting_has_no_label_for_is_refused():
    with pytest.raises(ValueError, match="'simple-nr' has no label for bucket 1"):
        seen_as(textbox("simple-fr", count=12), "simple-nr")


def test_shares_are_those_counted_by_hand():
    samples = textbox("complex-cr3", count=10)
    maps = torch.zeros(10, 3, 64, 64)
    maps[:, 0] = -samples.region(PRIMARY, "box").float()  # signs do not count
    maps[0] = 0.0
    maps[1] = float("nan")
    found, notes = shares(maps, samples)
    place = samples.buckets.index("11")  # A (285 pixels) and Box2 (16) decide
    assert found["text"][place].item() == pytest.approx(285 / 301)
    assert found["box1"][place].item() == 0
    assert found["box2"][place].item() == pytest.approx(16 / 301)
    assert found["background"][place].item() == 0
    assert notes[:2] == ["zero map", "nan map"]
    assert all(values[:2].tolist() == [0, 0] for values in found.values())


def test_shares_add_up_to_one(found):
    sums: dict[tuple[str, str, str], float] = {}
    for row in found.run.rows().to_pylist():
        cell = row["method"], row["setting"], row["sample"]
        sums[cell] = sums.get(cell, 0.0) + row["value"]
    assert {round(total, 9) for (method, *_), total in sums.items() if method != "oracle"} == {1.0}


def test_the_same_call_goes_on_and_a_new_method_joins(found, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in found.run.parts()}
    again = identify(
        {"one_class": one_class, "zeros": lambda model, images, targets: images * 0}, per_bucket=4, device="cpu",
        out=found.run.folder,
    )  # fmt: skip
    assert before.items() <= {path: path.stat().st_mtime_ns for path in again.run.parts()}.items()
    assert again.table()["one_class"] == found.table()["one_class"]
    assert again.table()["zeros"]["mean"].value == pytest.approx(1 / 7)
    assert any("zeros" in line and "zero map" in line for line in again.problems())
    assert not any("oracle" in line for line in again.problems())


def test_another_request_needs_another_folder(found):
    with pytest.raises(ValueError, match="per_bucket 4, you asked for 5"):
        identify({"one_class": one_class}, per_bucket=5, out=found.run.folder)


def test_one_image_a_bucket_is_too_few(tmp_path):
    with pytest.raises(ValueError, match="per-bucket is 1: wanted 2 or more"):
        identify(per_bucket=1, out=tmp_path / "run")
    with pytest.raises(ValueError, match="batch size is -1: wanted 1 or more"):
        identify(batch_size=-1, out=tmp_path / "run")


def test_a_method_that_fails_is_told_and_the_rest_goes_on(tmp_path):
    def broken(model, images, targets):
        raise RuntimeError("no")

    found = identify({"broken": broken}, per_bucket=2, device="cpu", out=tmp_path / "run")
    assert found.failed == {"broken": "RuntimeError: no"}
    assert "broken" not in found.table()
    assert "oracle" in found.table()


@pytest.fixture(scope="module")
def trainings(tmp_path_factory):
    """Two trainings of the seven: those that ship, and a stand-in whose complex models are all one network."""
    shelf = tmp_path_factory.mktemp("models")
    for setting in SETTINGS:
        for seed, source in enumerate((setting, setting if setting.startswith("simple") else "complex-cr1")):
            stem = setting + f".seed{seed}" * bool(seed)
            shutil.copyfile(FOLDER / f"{source}.safetensors", shelf / f"{stem}.safetensors")
            card = json.loads((FOLDER / f"{source}.json").read_text())
            (shelf / f"{stem}.json").write_text(
                json.dumps(card | {"setting": setting, "seed": seed, "accepted": not seed})
            )
    return shelf


@pytest.fixture(scope="module")
def several(trainings, tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "identify"
    return identify({"one_class": one_class}, per_bucket=2, device="cpu", models=trainings, out=out)


def test_the_models_of_each_seed_are_told_apart_by_themselves(several):
    rows = several.run.rows()
    assert set(rows["model"].unique().to_pylist()) == {
        f"{name}_cnn(seed={seed})" for name in ("simple", "complex") for seed in (0, 1)
    }
    of_seed = [
        identifiability(rows.filter(pc.match_substring(rows["model"].cast("string"), f"seed={seed}")))
        for seed in (0, 1)
    ]
    one, other = (scores.estimate("one_class", scores.of("all")).value for scores in of_seed)
    assert other < one  # five models that are one network cannot be told apart
    assert several.table()["one_class"]["mean"].value == pytest.approx((one + other) / 2)
    assert several.table()["oracle"]["mean"].value == pytest.approx(15 / 28)
    told = several.over_models()
    half = stats.t.ppf(0.975, 1) * np.std([one, other], ddof=1) / np.sqrt(2)
    assert told["one_class"].models.high - told["one_class"].models.value == pytest.approx(half)
    assert told["oracle"].models.high == pytest.approx(15 / 28)
    assert told["one_class"].count == 2
    assert progress(several.run).finished


def test_several_trainings_are_told_in_words_and_numbers(several, capsys):
    show(several)
    shown = " ".join(capsys.readouterr().out.split())
    assert "models ±" in shown
    assert "Means over 2 trainings" in shown
    assert "simple-fr.seed1 was not accepted" in shown
    assert "simple-fr was" not in shown
    assert as_dict(several)["over_models"]["one_class"]["count"] == 2


def test_a_study_gives_both_intervals(several):
    study = Study(several.run.folder.parent, "smoke", {})
    drawn = drawn_of(study)
    assert "Means over 2 trainings" in drawn.note
    row = next(row for row in drawn.charts[0].rows if row["method"] == "one_class")
    ends = several.over_models()["one_class"].models
    assert (row["low over models"], row["high over models"]) == (ends.low, ends.high)
    line = next(line for line in identified(study.told, study.told_over_models()).splitlines() if "one_class" in line)
    assert line.endswith(f" | {100 * ends.low:.1f} to {100 * ends.high:.1f} |")
    assert identified(study.told, {}).splitlines()[2].endswith(" | - |")


def test_one_training_has_no_interval_over_models(found):
    assert found.over_models() == {}


def test_one_seed_can_be_chosen_and_settings_must_have_the_same(trainings, tmp_path):
    chosen = identify({}, per_bucket=2, device="cpu", models=trainings, model_seeds=[1], out=tmp_path / "one")
    assert set(chosen.run.manifest["fixed"]["weights"]) == {f"{setting}.seed1" for setting in SETTINGS}
    lacking = shutil.copytree(trainings, tmp_path / "lacking")
    (lacking / "complex-cr2.seed1.json").unlink()
    with pytest.raises(ValueError, match=r"complex-cr2 with seed 0 and simple-fr with 0, 1: .*--model-seed"):
        identify({}, per_bucket=2, models=lacking, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_prints_the_table_and_json(tmp_path):
    (tmp_path / "mine.py").write_text("def mine(model, images, targets):\n    return images\n")
    call = ["identify", "--method", f"{tmp_path / 'mine.py'}:mine", "--per-bucket", "2", "--out", str(tmp_path / "run")]
    shown = CliRunner().invoke(app, call)
    assert shown.exit_code == 0
    assert "Settings told right" in shown.output
    printed = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)
    means = {row["method"]: row["value"] for row in printed["table"] if row["bucket"] == "mean"}
    assert means["oracle"] == pytest.approx(15 / 28)
    assert means["mine"] == pytest.approx(1 / 7)  # the image itself, whatever the model
    later = CliRunner().invoke(app, ["show", str(tmp_path / "run"), "--json"])
    assert json.loads(later.stdout)["table"] == printed["table"]
    assert progress(opened(tmp_path / "run")).finished
    refused = CliRunner().invoke(app, ["report", str(tmp_path / "run")])
    assert refused.exit_code == 2
