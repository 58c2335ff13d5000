"""The benchmark on handmade networks: known answers of methods, the report, and what is refused."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from saliometer import bench
from saliometer.cli import app
from saliometer.engine.handmade import card, load
from saliometer.engine.run import opened
from saliometer.report.facts import progress
from saliometer.summary import Scores
from saliometer.tasks.handmade import TASK


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return bench(["gradient", "grad_cam"], task="handmade", per_bucket=2, region="ink", device="cpu", out=folder).run


def pafl(run, method: str) -> dict[tuple[str, str], float]:
    scores = Scores(run.rows(), "pafl", "clean", resamples=10)
    return dict(zip(scores.cells, scores.means[:, scores.methods.index(method)], strict=True))


def test_the_gradient_is_right_wherever_it_is_not_saturated(run):
    """All of it lies on the objects that decide; with both there, `or` is flat: the map is empty and scores 0."""
    for (setting, bucket), value in pafl(run, "gradient").items():
        both = all(TASK.buckets[int(bucket)][name] for name in ("cross", "ring"))
        assert value == (0.0 if setting == "or" and both else 1.0)


def test_cells_are_the_buckets_in_which_something_decides(run):
    wanted = {("and", b) for b in "48"} | {(s, b) for s in ("or", "xor") for b in "234678"}
    assert set(pafl(run, "oracle")) == wanted
    assert set(pafl(run, "oracle").values()) == {1.0}
    safl = run.rows().filter(np.array(run.rows()["metric"].to_pylist()) == "safl")
    scored = {b for b, v in zip(safl["bucket"].to_pylist(), safl["value"].to_pylist(), strict=True) if v == v}
    assert scored == set("5678")  # those with a disc


def test_rows_and_manifest_name_the_task_and_its_networks(run):
    assert set(run.rows()["task"].to_pylist()) == {"handmade"}
    assert set(run.rows()["model"].to_pylist()) == {f"logic(rule={s})" for s in ("and", "or", "xor")}
    assert run.manifest["fixed"]["weights"] == {s: load(s).fingerprint for s in ("and", "or", "xor")}
    assert run.manifest["counts"] == dict.fromkeys(("and", "or", "xor"), 16)
    assert all(facts["accepted"] for facts in run.manifest["models"].values())
    assert progress(run).finished


def test_weights_are_the_same_every_time_and_differ_by_rule():
    assert load("and").fingerprint == load("and").fingerprint == card("and")["sha256"]
    assert len({load(setting).fingerprint for setting in TASK.settings}) == 3


def test_the_report_speaks_of_this_task_and_not_of_textbox(run):
    from saliometer.report.page import book_of, page

    book = book_of(run)
    html = page(book)
    assert "cross + ring + disc" in {sample.group.partition(": ")[2] for sample in book.samples}
    assert "some of its objects, cross, ring, disc: 8 buckets" in html
    assert "Box1" not in html
    assert "SMERF Figure 9" not in html
    assert "1 if just one of cross and ring is there" in html


def test_the_command_prints_json_and_lists_the_task(run):
    listed = CliRunner().invoke(app, ["list", "tasks"])
    assert "handmade" in listed.stdout
    shown = json.loads(CliRunner().invoke(app, ["show", str(run.folder), "--json"]).stdout)
    assert {s["method"] for s in shown["standings"] if s["rank"]} == {"gradient", "grad_cam"}


@pytest.mark.parametrize("option", [{"models": "somewhere"}, {"retrain": True}])
def test_there_is_nothing_to_train(option, tmp_path):
    with pytest.raises(ValueError, match="the models of 'handmade' are not trained"):
        bench(["gradient"], task="handmade", out=tmp_path / "run", **option)
    refused = CliRunner().invoke(app, ["train", "handmade"])
    assert refused.exit_code == 2


def test_the_same_call_goes_on(run):
    before = {path: path.stat().st_mtime_ns for path in run.parts()}
    bench(["gradient", "grad_cam"], task="handmade", per_bucket=2, region="ink", device="cpu", out=run.folder)
    assert {path: path.stat().st_mtime_ns for path in opened(run.folder).parts()} == before
