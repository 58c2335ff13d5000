"""A reasoning of one's own, from the docs' very example: trained, verified, benched; and models that do not fit."""

import json
import re
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from saliometer.cli import app
from saliometer.engine import train_own
from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.run import opened
from saliometer.engine.tasks import known

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


def ran(*call: object):
    return CliRunner().invoke(app, [str(part) for part in call])


@pytest.fixture(scope="module", autouse=True)
def _small():
    patch = pytest.MonkeyPatch()
    patch.setattr(train_own, "HELD_OUT", 20)
    patch.setattr(train_own, "PAIRS", 10)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example, trained by its command at small sizes."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "crossing.py").write_text(EXAMPLE)
    small = ["--limit", 3200, "--epochs", 4, "--batch", 64, "--restarts", 2, "--device", "cpu"]
    done = ran("train", folder / "crossing.py", *small, "--out", folder / "models")
    assert done.exit_code == 0, done.output
    assert "crossing: accepted" in done.stdout
    return folder


def test_the_example_is_as_short_as_the_docs_say():
    assert len(EXAMPLE.splitlines()) <= 45


def test_it_has_the_buckets_the_docs_say(folder):
    task = known(str(folder / "crossing.py")).task
    assert (len(task.buckets), len(task.reasonings("crossing"))) == (12, 10)


def test_the_card_says_what_was_verified(folder):
    card = json.loads((folder / "models" / "crossing.json").read_text())
    task = known(str(folder / "crossing.py")).task
    assert card["accepted"] is True
    assert (card["task"], card["model"], card["images"]) == ("crossing", "simple_cnn", 3200)
    assert card["digest"] == task.digest("crossing")
    assert set(card["accuracy_per_bucket"]) == {str(number) for number in task.reasonings("crossing")}
    assert set(card["acceptance"]) == {
        "overall accuracy", "worst bucket's accuracy", "counterfactual pairs right", "worst counterfactual cell right",
    }  # fmt: skip
    bars = [bar["wanted"] for bar in card["acceptance"].values()]
    assert bars == [0.95, 0.90, 0.95, 0.85]
    reliance = card["reliance"]
    assert reliance["bar"]["3"] > 0.8  # a bar before a green lamp stops
    assert reliance["leaf"]["3"] < 0.2


def test_it_is_benched_by_its_command_and_reported(folder):
    call = ["bench", "--task", folder / "crossing.py", "--models", folder / "models", "--method", "input_x_gradient"]
    call += ["--per-bucket", 2, "--device", "cpu", "--out", folder / "run"]
    done = ran(*call, "--json")
    assert done.exit_code == 0, done.output
    means = {s["method"]: s["mean"]["value"] for s in json.loads(done.stdout)["standings"]}
    assert means["oracle"] == 1
    assert means["input_x_gradient"] > means["random"]
    run = opened(folder / "run")
    assert set(run.rows()["task"].to_pylist()) == {"crossing"}
    assert set(run.rows()["model"].to_pylist()) == {"simple_cnn(seed=0)"}
    html = (folder / "run" / "report.html").read_text()
    assert "green lamp + bar" in html
    assert "Box1" not in html


def test_the_same_training_command_goes_on(folder):
    weights = folder / "models" / "crossing.safetensors"
    before = weights.stat().st_mtime_ns
    small = ["--limit", 3200, "--epochs", 4, "--batch", 64, "--restarts", 2, "--device", "cpu"]
    assert ran("train", folder / "crossing.py", *small, "--out", folder / "models").exit_code == 0
    assert weights.stat().st_mtime_ns == before


def test_a_model_of_another_version_of_the_task_is_refused(folder, tmp_path):
    (tmp_path / "crossing.py").write_text(EXAMPLE.replace("disc(9), RED", "disc(7), RED"))
    about = known(str(tmp_path / "crossing.py"))
    with pytest.raises(ValueError, match="is of another version of the task: train it anew"):
        about.found("crossing", folder / "models", PLAIN)


def test_a_model_that_is_not_there_is_told_how_to_train(folder, tmp_path):
    about = known(str(folder / "crossing.py"))
    with pytest.raises(ValueError, match=r"train one with `saliometer train .*crossing.py --setting crossing`"):
        about.found("crossing", tmp_path, PLAIN)
    with pytest.raises(ValueError, match=r"no model of crossing \(complex_cnn\)"):
        about.found("crossing", folder / "models", Condition(arch="complex_cnn"))


def test_weights_that_were_changed_are_refused(folder, tmp_path):
    for file in ("crossing.json", "crossing.safetensors"):
        (tmp_path / file).write_bytes((folder / "models" / file).read_bytes())
    (tmp_path / "crossing.safetensors").write_bytes(b"\0" * 10)
    with pytest.raises(ValueError, match="missing or not those of their card"):
        known(str(folder / "crossing.py")).load("crossing", tmp_path, "crossing")


def test_an_untrained_network_is_not_accepted(folder):
    task = known(str(folder / "crossing.py")).task
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 2))
    said = train_own.examine(net, task, "crossing")
    assert said["accepted"] is False


class Rule(torch.nn.Module):
    """Follows the rule by colour: white is the bar, pure green the green lamp."""

    def __init__(self, blind: bool = False) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(2))
        self.blind = blind

    def forward(self, images):
        red, green, blue = images.unbind(1)
        bar = ((red == 1) & (green == 1) & (blue == 1)).flatten(1).any(1)
        lamp = ((green == 1) & (red == 0)).flatten(1).any(1)
        go = (lamp if self.blind else lamp & ~bar).float()
        return torch.stack((1 - go, go), 1) + self.bias


def test_a_network_that_follows_the_rule_is_accepted_exactly(folder):
    said = train_own.examine(Rule(), known(str(folder / "crossing.py")).task, "crossing")
    assert said["accepted"] is True
    assert [bar["got"] for bar in said["acceptance"].values()] == [1, 1, 1, 1]
    assert set(said["reliance"]["leaf"].values()) == {0}


def test_one_that_does_not_see_the_bar_is_caught_by_the_pairs(folder):
    said = train_own.examine(Rule(blind=True), known(str(folder / "crossing.py")).task, "crossing")
    assert said["accepted"] is False
    assert said["counterfactuals_right"]["bar"]["3"] == 0
    assert set(said["reliance"]["bar"].values()) == {0}


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"rate": 0.0}, {"restarts": 0}, {"epochs": -1}, {"limit": -1}])
def test_sizes_that_make_no_sense_are_refused(folder, wrong, tmp_path):
    task = known(str(folder / "crossing.py")).task
    with pytest.raises(ValueError, match="wanted 1 or more"):
        train_own.train_own(task, "crossing", tmp_path, **wrong)


def test_files_are_named_by_setting_network_and_seed():
    assert train_own.stem("crossing") == "crossing"
    assert train_own.stem("crossing", "complex_cnn", 2) == "crossing.complex_cnn.seed2"


@pytest.mark.parametrize("option", [("--background", "noise"), ("--robust",), ("--sampler", "authors")])
def test_what_only_textbox_has_is_refused(folder, option):
    refused = ran("train", folder / "crossing.py", *option)
    assert refused.exit_code == 2
    assert "no choice of" in refused.output
