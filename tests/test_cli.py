"""The command line as a newcomer uses it: what is printed, exit codes, and one clear sentence for every mistake."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saliometer.cli import app
from saliometer.engine.run import opened

FEW = ["--setting", "simple-fr", "--per-bucket", "1"]


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli") / "run"
    result = call("bench", "--method", "gradient", "--method", "grad_cam", *FEW, "--out", folder)
    assert result.exit_code == 0, result.output
    return folder


def test_bench_prints_a_ranked_table_and_the_reports_path(run: Path) -> None:
    result = call("bench", "--method", "gradient", "--method", "grad_cam", *FEW, "--out", run)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    order = [line.split()[1] for line in lines if line.split()[:1] in (["ceiling"], ["control"], ["1"], ["2"])]
    assert order[0] == "oracle"
    assert {"gradient", "grad_cam", "edge", "fake_cam", "random"} < set(order)
    assert f"Report: {run / 'report.html'}" in result.stdout.replace("\n", "")
    assert (run / "report.html").read_text().startswith("<!doctype html>")


def test_bench_json_is_json_alone_and_holds_the_same_standings(run: Path) -> None:
    result = call("bench", "--method", "gradient", "--method", "grad_cam", *FEW, "--out", run, "--json")
    told = json.loads(result.stdout)
    oracle = next(s for s in told["standings"] if s["method"] == "oracle")
    assert oracle["mean"]["value"] == 1.0
    assert oracle["control"]
    assert told["failed"] == {}
    rows = opened(run).rows().to_pylist()
    values = [r["value"] for r in rows if r["method"] == "gradient" and r["metric"] == "pafl"]
    gradient = next(s for s in told["standings"] if s["method"] == "gradient")
    assert gradient["mean"]["value"] == pytest.approx(np.nanmean(values))


def test_a_failing_method_makes_the_exit_code_1_and_the_rest_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def mine(model, images, targets):\n    raise RuntimeError('no such hook')\n")
    result = call("bench", "--method", f"{file}:mine", "--method", "gradient", *FEW, "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "Failed: mine: RuntimeError: no such hook" in result.stdout
    assert "gradient" in result.stdout
    assert "Traceback" not in result.stdout


def test_when_every_method_fails_there_are_still_the_controls(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def mine(model, images, targets):\n    return images.new_full(images.shape, float('nan'))\n")
    result = call("bench", "--method", f"{file}:mine", "--method", "gradient", *FEW, "--out", tmp_path / "run")
    assert result.exit_code == 1
    assert "Warning: mine returned NaN or infinity in" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench", "--method", "gradeint"], "Error: there is no method 'gradeint'. Did you mean 'gradient'?"),
        (["bench", "--setting", "complex-c1"], "Error: there is no setting 'complex-c1'. Did you mean 'complex-cr1'?"),
        (["bench", "--device", "cuda:77"], "Error: no such device: 'cuda:77'"),
        (["bench", "--maps", "mine"], "Error: --maps mine: wanted NAME=file.npz"),
        (["bench", "--maps", "mine=nowhere.npz"], "Error: maps 'mine': cannot read 'nowhere.npz' as npz"),
        (["list", "method"], "Error: there is no list 'method'. Did you mean 'methods'?"),
        (["rows", "nowhere"], "Error: there is no run folder 'nowhere'"),
        (["report", "nowhere"], "Error: there is no run folder 'nowhere'"),
        (["train", "textbux"], "Error: there is no task 'textbux'. Did you mean 'textbox'?"),
        (["train", "--setting", "simple-fx"], "Error: there is no setting 'simple-fx'. Did you mean 'simple-fr'?"),
        (["train", "--loss", "hinge"], "Error: there is no loss 'hinge'"),
        (["explain", "--method", "gradcam"], "Error: there is no method 'gradcam'. Did you mean 'grad_cam'?"),
        (["explain", "--method", "oracle"], "Error: method 'oracle' shows the truth itself"),
        (["explain", "--target", "2"], "Error: --target 2: model 'simple_cnn(seed=0)' has 2 classes, 0..1"),
        (["explain", "--image", "nowhere.png"], "Error: cannot read the image 'nowhere.png'"),
        (["train", "--restarts", "0"], "Error: restarts 0, epochs 0, limit 0: wanted restarts of 1 or more"),
        (["train", "--rate", "0"], "Error: batch is 512 and rate 0.0: wanted 1 or more, and more than 0"),
        (["train", "--ramp", "0.5"], "Error: --ramp 0.5 is of --robust: add that, or leave it out"),
        (["train", "--robust", "--ramp", "1.5"], "Error: ramp is 1.5: wanted 0 to 1"),
        (["train", "--epochs", "-1"], "wanted restarts of 1 or more, epochs and limit of 0 or more"),
        (["bench", "--export-images", "x", "--models", "y"], "Error: --export-images writes the shipped benchmark"),
        (["explain", "--sample", "-1"], "Error: --sample -1: wanted 0 or more"),
    ],
)
def test_a_mistake_gets_one_clear_sentence_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = call(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_an_image_of_another_size_is_refused_with_what_is_wanted(tmp_path: Path) -> None:
    Image.new("RGB", (100, 64)).save(tmp_path / "wide.png")
    result = call("explain", "--image", tmp_path / "wide.png", "--out", tmp_path / "map.png")
    assert result.exit_code == 2
    assert "is 100x64, wanted 64x64" in result.stderr


@pytest.mark.parametrize("what", ["methods", "metrics", "tasks", "models", "settings"])
def test_list_shows_every_name_with_a_line_and_json_too(what: str) -> None:
    entries = json.loads(call("list", what, "--json").stdout)
    plain = call("list", what).stdout
    assert len(entries) >= 1
    for entry in entries:
        assert entry["name"] in plain
        assert entry["summary"]


def test_explain_draws_a_picture_that_depends_on_the_method(tmp_path: Path) -> None:
    pictures = []
    for method in ("gradient", "grad_cam"):
        out = tmp_path / f"{method}.png"
        result = call("explain", "--method", method, "--setting", "complex-cr2", "--sample", "9", "--out", out)
        assert result.exit_code == 0, result.output
        assert f"Wrote {out}" in result.stdout.replace("\n", "")
        pictures.append(np.asarray(Image.open(out)))
    assert pictures[0].shape == pictures[1].shape
    assert (pictures[0] != pictures[1]).any()


def test_rows_answers_sql_writes_csv_and_prints_json(run: Path, tmp_path: Path) -> None:
    query = "select method, count(*) as n from rows where metric = 'pafl' group by all order by method"
    found = json.loads(call("rows", run, "--sql", query, "--json").stdout)
    assert found[0] == {"method": "centre", "n": 12}
    result = call("rows", run, "--csv", tmp_path / "new" / "all.csv")
    assert "Wrote 672 rows" in result.stdout  # 12 samples x 6 methods x 8 metrics
    assert len((tmp_path / "new" / "all.csv").read_text().splitlines()) == 673
    assert len(json.loads(call("rows", run, "--limit", "3", "--json").stdout)) == 3


def test_undefined_values_are_null_so_that_averages_work(run: Path) -> None:
    query = "select method, avg(value) as v from rows where metric = 'safl' and method = 'gradient' group by all"
    (found,) = json.loads(call("rows", run, "--sql", query, "--json").stdout)
    values = [r["value"] for r in opened(run).rows().to_pylist() if r["metric"] == "safl" and r["method"] == "gradient"]
    assert found["v"] == pytest.approx(np.nanmean(values))


def test_a_wrong_query_says_what_is_wrong(run: Path) -> None:
    result = call("rows", run, "--sql", "select metod from rows")
    assert result.exit_code == 2
    assert "Error: --sql:" in result.stderr
    assert "metod" in result.stderr
    result = call("rows", run, "--limit", "-1")
    assert result.exit_code == 2
    assert "Error: --limit -1: wanted 1 or more, or 0 for all" in result.stderr


def test_report_is_written_again_from_the_folder_alone(run: Path, tmp_path: Path) -> None:
    result = call("report", run, "--out", tmp_path / "page.html")
    assert result.exit_code == 0
    assert "gradient" in (tmp_path / "page.html").read_text()


def test_models_of_a_condition_are_trained_by_seed_and_explained_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saliometer.engine.train.PER_BUCKET_HELD_OUT", {"simple": 5})
    monkeypatch.setattr("saliometer.engine.train.PAIRS", 2)
    words = ["--setting", "simple-fr", "--background", "noise", "--limit", "24", "--epochs", "1", "--restarts", "1"]
    for seed in (0, 1):
        result = call("train", "textbox", *words, "--seed", seed, "--out", tmp_path)
        assert f"simple-fr.noise{'.seed1' * seed}.safetensors" in result.stdout
    bench = ["bench", "--method", "gradient", "--setting", "simple-fr", "--per-bucket", "2", "--background", "noise"]
    found = call(*bench, "--models", tmp_path, "--out", tmp_path / "run")
    assert found.exit_code == 0, found.output
    assert "Of up to 2 models of a setting" in found.stdout
    told = json.loads(call("show", tmp_path / "run", "--json").stdout)
    assert told["over_models"]["gradient"]["count"] == 2
    lone = call(*bench, "--models", tmp_path, "--model-seed", "1", "--out", tmp_path / "lone")
    assert lone.exit_code == 0
    assert "models of a setting" not in lone.stdout
    missing = call(*bench, "--out", tmp_path / "none")
    assert missing.exit_code == 2
    assert 'saliometer train textbox --setting simple-fr --background "noise"' in missing.stderr


def test_train_keeps_weights_with_a_card_and_says_when_they_are_not_accepted(tmp_path: Path) -> None:
    words = ["--setting", "simple-fr", "--limit", "240", "--epochs", "1", "--restarts", "1", "--out", tmp_path]
    words += ["--batch", "128", "--rate", "0.0001"]
    result = call("train", "textbox", *words)
    assert result.exit_code == 1
    assert "simple-fr: NOT accepted" in result.stdout
    card = json.loads((tmp_path / "simple-fr.json").read_text())
    assert (card["images"], card["batch"], card["rate"]) == (240, 128, 0.0001)
    assert set(card["reliance"]) == {"text", "box1", "box2"}
    assert set(card["accuracy_per_bucket"]) == {str(n) for n in range(1, 13)}
    assert (tmp_path / "simple-fr.safetensors").stat().st_size < 1_500_000  # float16
    again = call("bench", "--method", "gradient", *FEW, "--models", tmp_path, "--out", tmp_path / "run")
    assert again.exit_code == 0, again.output


def test_maps_made_elsewhere_score_like_the_method_that_made_them(tmp_path: Path) -> None:
    import torch

    from saliometer import explain
    from saliometer.engine.shipped import load

    result = call("bench", *FEW, "--export-images", tmp_path / "bench")
    assert result.exit_code == 0, result.output
    with np.load(tmp_path / "bench" / "images.npz") as file:
        images, targets, ids = (file[f"simple-fr.{name}"] for name in ("images", "targets", "ids"))
    maps = explain(load("simple-fr"), torch.from_numpy(images), "input_x_gradient", torch.from_numpy(targets)).numpy()
    order = np.arange(len(ids))[::-1]
    np.savez(tmp_path / "mine.npz", **{"simple-fr": maps[order], "simple-fr.ids": ids[order]})
    words = ["--method", "input_x_gradient", "--maps", f"mine={tmp_path / 'mine.npz'}"]
    result = call("bench", *FEW, *words, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    rows = opened(tmp_path / "run").rows().to_pylist()
    theirs, ours = (
        [r["value"] for r in rows if r["method"] == name and r["metric"] != "residual"]
        for name in ("mine", "input_x_gradient")
    )
    np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-9)


def test_the_exported_onnx_model_gives_the_models_logits(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="the extra 'onnx' is not installed")
    import torch

    from saliometer.engine.shipped import load

    assert call("bench", *FEW, "--export-images", tmp_path).exit_code == 0
    with np.load(tmp_path / "images.npz") as file:
        images = file["simple-fr.images"]
    session = runtime.InferenceSession(tmp_path / "models" / "simple-fr.onnx")
    (logits,) = session.run(["logits"], {"images": images})
    np.testing.assert_allclose(logits, load("simple-fr").logits(torch.from_numpy(images)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros((12, 64, 64))}, "holds other, wanted an array for each of simple-fr"),
        ({"simple-fr": np.zeros((5, 64, 64))}, "array of shape (5, 64, 64) and type float64 for 12 samples"),
    ],
)
def test_maps_that_do_not_fit_are_refused(arrays: dict, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **arrays)
    result = call("bench", *FEW, "--maps", f"mine={tmp_path / 'mine.npz'}", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("kind", ["npy", "broken zip", "number"])
def test_files_that_are_no_maps_are_refused_in_words(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        if kind == "npy":
            np.save(file, np.zeros((12, 64, 64)))
        elif kind == "number":
            np.savez(file, **{"simple-fr": np.array(3.0)})
        else:
            file.write(b"PK\x03\x04 broken")
    result = call("bench", *FEW, "--maps", f"mine={path}", "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "Error: maps 'mine'" in result.stderr


def test_the_exports_guide_gives_the_command_for_these_images(tmp_path: Path) -> None:
    call("bench", *FEW, "--target", "label", "--sampler", "authors", "--export-images", tmp_path)
    guide = (tmp_path / "README.md").read_text()
    assert "--maps mine=mine.npz --setting simple-fr --per-bucket 1 --target label --sampler authors" in guide


def test_maps_of_another_size_fail_while_the_rest_goes_on(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", **{"simple-fr": np.zeros((12, 32, 32))})
    words = ["--method", "gradient", "--maps", f"mine={tmp_path / 'mine.npz'}", "--out", tmp_path / "run"]
    result = call("bench", *FEW, *words)
    assert result.exit_code == 1
    assert "Failed: mine: ValueError: method 'mine' returned shape (12, 32, 32)" in result.stdout


def test_a_process_killed_at_several_points_ends_equal_to_one_that_was_not(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "saliometer", "bench", "--method", "integrated_gradients(steps=8)", "--limit", "140"]
    words += ["--setting", "simple-fr", "--setting", "simple-nr", "--per-bucket", "20", "--out"]

    def parts() -> int:
        return len(list((tmp_path / "killed").glob("rows/**/*.parquet")))

    for wanted in (1, 6):  # the first part is there; the second unit has begun
        process = subprocess.Popen(
            [*words, str(tmp_path / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while parts() < wanted and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    between = parts()
    assert 6 <= between < 20
    for name in ("killed", "whole"):
        subprocess.run([*words, str(tmp_path / name)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    killed, whole = (opened(tmp_path / name).rows() for name in ("killed", "whole"))
    assert killed.num_rows == whole.num_rows == 2 * 140 * (6 * 8 + 1)  # and one residual
    columns = [name for name in whole.column_names if name != "value"]
    assert killed.select(columns).to_pylist() == whole.select(columns).to_pylist()
    np.testing.assert_array_equal(killed["value"].to_numpy(), whole["value"].to_numpy())


def test_scoring_needs_only_the_core_libraries(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for name in ('typer','rich','jinja2','matplotlib','duckdb','skimage','sklearn'): sys.modules[name] = None\n"
        "import saliometer\n"
        "out = saliometer.bench('gradient', settings=['simple-fr'], per_bucket=1, out=sys.argv[1])\n"
        "assert out.run.rows().num_rows == 12 * 6 * 8\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "run")], check=True)


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "saliometer.cli", "--help"], stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_help_needs_neither_torch_nor_pyarrow() -> None:
    code = (
        "import sys\nfrom saliometer.cli import app\ntry:\n    app(['audit', '--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'numpy', 'pyarrow', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_table_that_is_piped_keeps_its_lines_whole_and_undefined_is_a_dash(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of pytest-xdist set it
    long = "y" * 200
    plain = call("rows", run, "--sql", f"select '{long}' as word, null as value").stdout
    assert f"│ {long} │ -     │" in plain


def test_a_file_that_cannot_be_written_is_named_in_words(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = call("rows", run, "--csv", tmp_path / "file" / "rows.csv")
    assert result.exit_code == 2
    assert re.fullmatch(r"Error: '.*file': [A-Z][a-z ]+\n", result.stderr)


def test_the_version_is_told() -> None:
    from saliometer import __version__

    assert call("--version").stdout == f"saliometer {__version__}\n"
