"""`saliometer audit` and `compare-definitions` as a newcomer uses them: what is printed, exit codes, mistakes."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from audit_toys import failing
from saliometer.cli import app
from saliometer.engine.run import opened

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 12 * 12, 3)
    )

def squashed():
    return nn.Sequential(build(), nn.Softmax(1))

def wrong():
    return nn.Conv2d(3, 4, 3)
"""


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network in a file, four pictures, one broken, with labels and masks."""
    folder = tmp_path_factory.mktemp("audit")
    (folder / "net.py").write_text(NET)
    rng = np.random.default_rng(0)
    for kind in ("photos", "masks"):
        (folder / kind).mkdir()
    for name in "abcd":
        Image.fromarray(rng.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(folder / "photos" / f"{name}.png")
        mask = np.zeros((20, 24), np.uint8)
        mask[4:16, 4:16] = 255
        Image.fromarray(mask).save(folder / "masks" / f"{name}.png")
    (folder / "photos" / "empty.jpg").write_bytes(b"")
    (folder / "labels.csv").write_text("file,class_index\na.png,0\nb.png,1\nc.png,2\nd.png,1\nempty.jpg,0\n")
    np.savez(folder / "maps.npz", maps=rng.normal(size=(4, 16, 16)))
    return folder


def given(place: Path, build: str = "build") -> list[object]:
    return [
        "audit", "--model", f"{place / 'net.py'}:{build}", "--images", place / "photos", "--size", 16, "--mean", "0.5",
        "--std", "0.25", "--method", "gradient",
    ]  # fmt: skip


QUICK = ["--metric", "average_drop", "--metric", "deletion(steps=4)"]


@pytest.fixture(scope="module")
def run(place: Path) -> Path:
    both = ["--normalisation", "abs_max_minmax", "--normalisation", "signed_joint_minmax"]
    elsewhere = ["--maps", f"mine={place / 'maps.npz'}"]
    words = [*given(place), *QUICK, "--metric", "max_sensitivity(draws=2)", *elsewhere, *both]
    result = call(*words, "--out", place / "run", "--json")
    assert result.exit_code == 0, result.output
    (place / "told.json").write_text(result.stdout)
    return place / "run"


def test_json_is_json_alone_and_holds_what_the_rows_hold(place, run):
    told = json.loads((place / "told.json").read_text())
    rows = opened(run).rows().to_pylist()
    for cell in told["table"]:
        values = [
            row["value"] for row in rows
            if (row["metric"], row["definition"], row["method"]) == (cell["metric"], cell["definition"], cell["method"])
        ]  # fmt: skip
        assert len(values) == 4
        assert cell["value"] == pytest.approx(np.nanmean(values))
        assert cell["low"] <= cell["value"] <= cell["high"]
    assert told["methods"][0] in ("gradient", "mine")
    assert told["report"] == str(run / "report.html")
    assert Path(told["report"]).read_text().startswith("<!doctype html>")
    assert told["failed"] == {}
    assert told["costs"]["maps"]["passes"] == 4


def test_an_unreadable_picture_is_named_and_left_out(place, run):
    (warning,) = json.loads((place / "told.json").read_text())["warnings"][:1]
    assert warning.startswith("1 image could not be read and was left out: empty.jpg (")


def test_metrics_that_explain_again_are_left_out_for_maps_made_elsewhere(place, run):
    told = json.loads((place / "told.json").read_text())
    assert told["left_out"] == {"mine, max_sensitivity": "it calls the method again, and there are only maps"}
    assert {(c["method"]) for c in told["table"] if c["metric"] == "average_drop"} > {"mine", "gradient", "random"}
    assert "mine" not in {c["method"] for c in told["table"] if c["metric"] == "max_sensitivity"}


def test_definitions_are_compared_with_ranks_and_agreement(run):
    found = json.loads(call("compare-definitions", run, "--metric", "average_drop", "--json").stdout)
    assert [move["definition"] for move in found] == [
        "abs_max_minmax(space=raw)", "signed_joint_minmax(space=raw)",
    ]  # fmt: skip
    assert found[0]["agreement"] == pytest.approx(1)
    assert -1 <= found[1]["agreement"] <= 1
    assert set(found[0]["ranks"]) == {"gradient", "mine", "random", "edge", "centre", "fake_cam", "all_ones"}
    unknown = call("compare-definitions", run, "--metric", "averge_drop")
    assert unknown.exit_code == 2
    assert "there is no metric 'averge_drop'. Did you mean 'average_drop'?" in " ".join(unknown.output.split())
    shown = call("compare-definitions", run)
    assert shown.exit_code == 0
    assert "average_drop" in shown.stdout
    assert "signed_joint_minmax" in shown.stdout


def test_the_words_on_the_screen(place):
    result = call(
        *given(place), *QUICK, "--labels", place / "labels.csv", "--target", "label", "--out", place / "shown"
    )
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "4 images, 6 methods:" in text
    assert "passes, about" in text
    assert "Warning: 1 image could not be read and was left out: empty.jpg" in text
    assert f"Report: {place / 'shown' / 'report.html'}" in text.replace("\n", "")
    assert "gradient" in text
    one = call("compare-definitions", place / "shown")
    assert one.exit_code == 2
    assert "holds one definition of each metric" in one.output
    again = call("report", place / "shown", "--out", place / "again.html")
    assert again.exit_code == 0
    assert (place / "again.html").read_text() == (place / "shown" / "report.html").read_text()


def test_masks_bring_the_metrics_of_location(place):
    result = call(*given(place), "--metric", "pointing_game", "--metric", "iou", "--masks", place / "masks",
                  "--out", place / "located", "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert {cell["metric"] for cell in json.loads(result.stdout)["table"]} == {
        "pointing_game", "iou", "pointing_game.chance", "iou.chance",
    }  # fmt: skip


def test_a_metric_that_fails_makes_the_exit_code_1_and_the_rest_is_shown(place):
    words = [*given(place), "--metric", "deletion(steps=4)", "--metric", "sparseness", "--out", place / "failing"]
    for _ in range(2):
        with failing("deletion"):
            result = call(*words)
        assert result.exit_code == 1
        assert "Failed: gradient, deletion: RuntimeError" in " ".join(result.stdout.split())
        assert "sparse" in result.stdout
        assert "Traceback" not in result.stdout


@pytest.mark.parametrize(
    ("build", "words", "message"),
    [
        ("build", ["--target", "label"], "target 'label' wants labels, but the images came without"),
        ("build", ["--target", "labels"], "there is no target 'labels'. Did you mean 'label'?"),
        ("build", ["--metric", "iou"], "metric 'iou' compares with masks or boxes, but the images came without"),
        ("build", ["--metric", "averge_drop"], "there is no metric 'averge_drop'. Did you mean 'average_drop'?"),
        ("build", ["--method", "gradcam"], "there is no method 'gradcam'. Did you mean 'grad_cam'?"),
        ("build", ["--maps", "mine"], "--maps mine: wanted NAME=file.npz"),
        ("build", ["--maps", "mine=nowhere.npz"], "maps 'mine': cannot read 'nowhere.npz' as npz"),
        ("build", ["--mean", "grey"], "--mean grey: wanted numbers like 0.485,0.456,0.406"),
        ("build", ["--images", "nowhere"], "there is nothing at 'nowhere'"),
        ("build", ["--size", "10"], "does not take images of shape"),
        ("build", ["--output", "probability"], "--output probability, but the model gives values from"),
        ("squashed", [], "the model gives probabilities; wanted logits: remove its softmax, or pass --output"),
        ("wrong", [], "wanted a tensor (images, classes) of logits"),
        ("bild", [], "there is no callable 'bild'. Did you mean 'build'?"),
    ],
)
def test_mistakes_get_one_clear_sentence(place, tmp_path, build, words, message):
    result = call(*given(place, build), *words, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not (tmp_path / "run").exists()


def test_labels_that_do_not_fit_are_refused(place, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("file,class_index\na.png,0\nb.png,1\nc.png,7\nd.png,1\nempty.jpg,0\n")
    result = call(*given(place), "--labels", labels, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "label 7 of 'c.png' is out of range: model 'build' has 3 classes, 0..2" in " ".join(result.output.split())


def test_probabilities_are_taken_for_what_they_are_when_it_is_said(place, tmp_path):
    words = ["--metric", "probability", "--metric", "deletion(steps=4)", "--json"]
    plain = call(*given(place), *words, "--out", tmp_path / "plain")
    squashed = call(*given(place, "squashed"), *words, "--output", "probability", "--out", tmp_path / "squashed")
    assert plain.exit_code == squashed.exit_code == 0, squashed.output
    one, two = ([cell["value"] for cell in json.loads(result.stdout)["table"]] for result in (plain, squashed))
    assert one == pytest.approx(two, rel=1e-4)


def test_the_same_folder_goes_on_and_another_request_is_refused(place, run):
    result = call(*given(place), "--metric", "sparseness", "--out", run)
    assert result.exit_code == 2
    assert "holds a run with metrics" in " ".join(result.output.split())


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_killed_audit_goes_on_where_it_was(place, tmp_path):
    words = [*given(place), "--method", "rise(masks=8000)", "--method", "smooth_grad(draws=4)", *QUICK]
    command = [sys.executable, "-m", "saliometer", *map(str, words), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not any((tmp_path / "run").rglob("*.parquet")) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = sorted((tmp_path / "run").rglob("*.parquet"))
    assert before
    result = call(*words, "--out", tmp_path / "run", "--json")
    assert result.exit_code == 0, result.output
    assert set(before) < set((tmp_path / "run").rglob("*.parquet"))
    assert len({row["method"] for row in opened(tmp_path / "run").rows().to_pylist()}) == 8
