"""`saliometer train images` as it is typed: what is printed, where files go, mistakes in one sentence."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from saliometer.cli import app
from saliometer.show_training import _folder, _images

FEW = ["--arch", "resnet20", "--epochs", "2", "--batch", "8", "--device", "cpu"]


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    """Twenty pictures of noise, two classes."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "noise.npz", x=pixels, y=np.arange(20) % 2)
    return tmp_path / "noise.npz"


def test_it_says_how_good_where_and_what_next(noise, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("train", "images", "--data", "noise.npz", *FEW)
    assert result.exit_code == 0, result.output
    first, second, third = result.stdout.splitlines()
    assert first.startswith("resnet20 on noise (16 training and 4 test images): test accuracy ")
    assert first.endswith(("misses 75 %", "passes 75 %"))
    folder = "runs/images/resnet20-noise"
    assert second == f"Wrote {folder}/final.safetensors, 2 checkpoints in {folder}/checkpoints and {folder}/card.json."
    audit = f"saliometer audit --model {folder} --images noise.npz --metric cose --checkpoints {folder}/checkpoints"
    assert third == f"Next: {audit} --preset cose"
    assert "a fifth of every class was kept for them, by seed 0." in result.stderr
    again = call("train", "images", "--data", "noise.npz", *FEW, "--json")
    told = json.loads(again.stdout)
    assert told == json.loads((tmp_path / folder / "card.json").read_text()) | {"folder": folder}


def test_a_model_no_better_than_one_class_is_warned_of(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    for name, labels in (("a", np.arange(40) % 2), ("b", np.zeros(40, dtype=int))):
        np.savez(tmp_path / f"{name}.npz", x=pixels, y=labels)
    place = ["--data", tmp_path / "a.npz", "--test", tmp_path / "b.npz", "--out", tmp_path / "out"]
    result = call("train", "images", *place, *FEW)
    assert result.exit_code == 0, result.output
    assert "always to name the largest class would be right on 100.0 % of the test images, too" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--arch", "resnet20"], "train images wants --data (a folder, .npz files, cifar10:ROOT, textbox:SETTING)"),
        (["--data", "x"], "and --arch, one of resnet20, convnext_tiny, vit_tiny"),
        (["--data", "x", "--arch", "resnet21"], "there is no architecture 'resnet21'. Did you mean 'resnet20'?"),
        (["--data", "x", "--arch", "resnet20", "--recipe", "cub"], "there is no recipe 'cub'"),
        (["--data", "x", "--arch", "resnet20", "--init", "no.pth"], "--init no.pth: there is no such file"),
        (["--data", "x", "--arch", "resnet20"], "there is nothing at 'x'"),
        (["--data", "cifer10:.", "--arch", "resnet20"], "there is no data set 'cifer10'. Did you mean 'cifar10'?"),
        (["--data", "x", "--arch", "resnet20", "--rate", "0"], "batch None, rate 0.0: wanted batches of 2 or more"),
        (["--data", "x", "--arch", "vit_tiny", "--side", "30"], "vit_tiny on images of 30 pixels: wanted 16 or more"),
        (["--data", "x", "--arch", "resnet20", "--robust"], "train images has no --robust: leave it out"),
        (["--data", "x", "--arch", "resnet20", "--setting", "a"], "train images has no --setting: leave it out"),
    ],
)
def test_a_mistake_gets_one_clear_sentence(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call("train", "images", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not list(tmp_path.iterdir())


def test_what_is_for_images_is_not_for_other_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option in (["--data", "x"], ["--init", "pretrained"], ["--frozen"], ["--side", "32"]):
        result = call("train", "textbox", *option)
        assert result.exit_code == 2
        assert f"train textbox has no {option[0]}: leave it out" in result.stderr


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("vit_tiny", "cifar10", "random", "", None, 0), "vit_tiny-cifar10"),
        (("vit_tiny(stem=conv)", "cifar10", "random", "", False, 2), "vit_tiny-stem=conv-cifar10-seed2"),
        (("resnet50", "cub200", "dino:a/b.pth", "cub200", True, 0), "resnet50-cub200-dino-cub200-frozen"),
        (("swin_t", "pets", "a/swin.pth", "", None, 1), "swin_t-pets-swin-seed1"),
        (("swin_t", "pets", "pretrained", "", None, 0), "swin_t-pets-pretrained"),
    ],
)
def test_folders_are_named_by_what_was_asked(given, name):
    assert _folder(*given) == name


def test_the_next_command_names_the_test_images(tmp_path):
    (tmp_path / "set" / "val").mkdir(parents=True)
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "x_test.npz").touch()
    assert _images(str(tmp_path / "set"), "") == str(tmp_path / "set" / "val")
    assert _images(str(tmp_path / "arrays"), "") == str(tmp_path / "arrays" / "x_test.npz")
    assert _images("a_train.npz,a_test.npz", "") == "a_test.npz"
    assert _images("cifar10:root", "") == "cifar10:root"
    assert _images("a.npz", "b.npz") == "b.npz"
    assert _images("textbox:simple-fr", "") == "FOLDER"


@pytest.mark.slow
def test_a_killed_command_goes_on_where_it_was(noise, tmp_path):
    """A kill that nothing can catch, somewhere in the middle."""
    words = ["train", "images", "--data", str(noise), "--arch", "resnet20", "--epochs", "30", "--batch", "8"]
    command = [sys.executable, "-m", "saliometer", *words, "--device", "cpu", "--out"]
    code = (
        "from saliometer.engine import train_images as t; t.KEEP_EVERY = 0.0; from saliometer.cli import main; main()"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words, "--device", "cpu", "--out", str(tmp_path / "killed")]
    )
    begun = tmp_path / "killed" / "training.checkpoint"
    deadline = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not json.loads((tmp_path / "killed" / "card.json").read_text())["finished"]
    for folder in ("killed", "whole"):
        subprocess.run([*command, str(tmp_path / folder)], check=True, capture_output=True)
    killed, whole = (json.loads((tmp_path / folder / "card.json").read_text()) for folder in ("killed", "whole"))
    assert killed["checkpoints"] == whole["checkpoints"]
    assert killed["sha256"] == whole["sha256"]
