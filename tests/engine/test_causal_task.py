"""The causal tasks as `train` and `bench` see them: a folder of networks, sources of pictures, and what is refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from saliometer import bench
from saliometer.cli import app
from saliometer.engine import causal_models
from saliometer.engine.causal import TASKS
from saliometer.engine.causal_task import ROUND, CausalTask
from saliometer.engine.condition import Condition
from saliometer.engine.request import Request, default_folder
from saliometer.engine.tasks import known
from saliometer.registry import tasks

ARCH = "digit_cnn(width=0.05)"
WAY = ["--arch", ARCH, "--limit", "60", "--epochs", "1", "--batch", "20"]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(causal_models, "TESTED", 60)
        done = CliRunner().invoke(app, ["train", "shape_digits", *WAY, "--out", str(folder)])
    assert done.exit_code == 1  # trained for a blink: neither is accepted, and it is said
    assert done.stdout.count("NOT accepted") == 2
    return folder


def test_the_bench_scores_both_labellings_of_the_same_images(shelf, tmp_path):
    found = bench(
        ["gradient"], task="shape_digits", models=shelf, arch=ARCH, per_bucket=1, region="ink", device="cpu",
        out=tmp_path / "run",
    )  # fmt: skip
    rows = found.run.rows()
    assert set(rows["task"].to_pylist()) == {"shape_digits"}
    assert set(rows["setting"].to_pylist()) == {"shape", "digit"}
    assert found.run.manifest["fixed"]["source"] == "sklearn"
    assert found.run.manifest["words"]["buckets"]["12"] == "1 and a rectangle"
    pafl = [
        (setting, bucket, value)
        for setting, bucket, value, method, metric in zip(
            *(rows[name].to_pylist() for name in ("setting", "bucket", "value", "method", "metric")), strict=True
        )
        if metric == "pafl" and method == "oracle"
    ]
    assert len(pafl) == 60
    for setting, bucket, value in pafl:
        shown = setting == "digit" or int(bucket) > 10  # without a shape nothing that is there decides
        assert value == pytest.approx(1) if shown else np.isnan(value)
    page = CliRunner().invoke(app, ["report", str(tmp_path / "run")])
    assert page.exit_code == 0
    assert "shape_digits" in (tmp_path / "run" / "report.html").read_text()


@pytest.mark.parametrize("name", TASKS)
def test_image_i_shows_the_bucket_that_its_place_in_the_round_says(name):
    task = CausalTask(name)
    setting = tasks[name].facts.settings[0]
    numbers = task.cycle(setting, "test")
    shown = task.samples(setting, count=len(numbers) + 7).buckets
    assert [int(bucket) for bucket in shown] == [numbers[i % len(numbers)] for i in range(len(shown))]
    assert len(numbers) == ROUND[name]
    words = known(name).words
    assert set(words["settings"]) == set(tasks[name].facts.settings)
    assert len(set(words["buckets"].values())) == len(numbers)
    assert len(words["objects"]) == task.samples(setting, count=1).objects.shape[1]


def test_a_pairs_bucket_is_told_from_left_to_right():
    words = known("pairs").words["buckets"]
    assert words["1"] == "0 and 5"
    assert words["26"] == "5 and 0"


def test_another_source_is_named_in_rows_and_keeps_its_networks_apart(shelf, tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    for split in ("train", "test"):
        np.savez(place / f"{split}.npz", x=np.full((10, 28, 28), 90, np.uint8), y=np.arange(10))
    found = known(f"shape_digits(source='{place}')")
    assert found.name == "shape_digits(source=mine)"
    assert found.fixed["source"] == "mine"
    request = Request(("shape",), task=f"shape_digits(source='{place}')")
    assert default_folder(request, {}).name.startswith("shape_digits-source=mine-")
    with pytest.raises(ValueError, match="is of source=sklearn, wanted mine: train it anew with"):
        found.found("shape", shelf, Condition(arch=ARCH))


def test_a_folder_without_its_networks_says_how_to_train_one(shelf, tmp_path):
    with pytest.raises(ValueError, match=r"no model of shape \(digit_cnn\) in .* `saliometer train shape_digits "):
        known("shape_digits").found("shape", shelf, Condition())
    with pytest.raises(ValueError, match="no model of bottom"):
        known("half_digits").found("bottom", tmp_path, Condition())
    (tmp_path / "half_digits-bottom.x.json").write_text("{")
    with pytest.raises(ValueError, match="no readable card"):
        known("half_digits").found("bottom", tmp_path, Condition())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "half_digits", "--loss", "clipped"], "is trained by cross_entropy from scratch"),
        (["train", "half_digits", "--background", "noise"], "has no choice of background"),
        (["train", "half_digits", "--epochs", "-1"], "wanted twice 0 or more"),
        (["train", "half_digits(source=nowhere)"], "there are no pictures at 'nowhere'"),
        (["train", "half_digits(seed=1)"], "only source can be chosen here, leave out seed"),
        (["train", "half_digits(sauce=1)"], "there is no parameter 'sauce'. Did you mean 'source'?"),
        (["train", "half_digit"], "Did you mean 'half_digits'?"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_words(words, message, tmp_path):
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_the_card_says_what_the_gates_found(shelf):
    (path,) = shelf.glob("shape_digits-shape.*.json")
    card = json.loads(path.read_text())
    assert set(card["acceptance"]) == {
        "accuracy of the worst seed",
        "accuracy with A erased",
        "change of accuracy with N erased",
    }
    assert card["acceptance"]["accuracy of the worst seed"]["wanted"] == "0.985 or more"


def test_networks_that_name_shapes_see_dimmed_digits_and_others_do_not(shelf):
    seen = {
        s: json.loads(next(shelf.glob(f"shape_digits-{s}.*.json")).read_text())["faintest"] for s in ("shape", "digit")
    }
    assert seen == {"shape": 0.3, "digit": 1.0}
