"""Run folders: what they hold, and which ones are refused."""

import json
from pathlib import Path

import pytest

import saliometer
from saliometer.engine import shipped
from saliometer.engine.bench import bench
from saliometer.engine.run import Run, opened, read_manifest
from saliometer.files import put
from saliometer.tasks.textbox import SETTINGS

FEW = {"settings": ["simple-fr"], "per_bucket": 1}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    bench("gradient", out=tmp_path / "run", **FEW)
    return tmp_path / "run"


def test_a_run_stores_config_versions_seeds_and_weight_hashes(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    assert manifest["request"]["seed"] == 0
    assert manifest["request"]["settings"] == ["simple-fr"]
    assert manifest["fixed"]["task"] == "textbox-1"
    assert manifest["fixed"]["sampler"] == "disjoint"
    assert manifest["fixed"]["weights"] == {"simple-fr": shipped.card("simple-fr")["sha256"]}
    assert len(manifest["fixed"]["glyphs"]) == 16
    assert {"torch", "torchvision", "numpy", "python", "pyarrow", "safetensors"} <= set(manifest["versions"])
    assert manifest["saliometer"] == saliometer.__version__
    assert manifest["commands"]


def test_no_partial_file_is_left(run: Path) -> None:
    assert not list(run.rglob("*.partial*"))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"seed": 1}, "holds a run with seed 0, you asked for 1"),
        ({"per_bucket": 2}, "holds a run with per_bucket 1, you asked for 2"),
        ({"settings": ["simple-nr"]}, 'settings ["simple-fr"], you asked for ["simple-nr"]'),
        ({"definitions": ["authors"]}, 'definitions ["clean"], you asked for ["authors"]'),
    ],
)
def test_another_request_needs_another_folder(other: dict, words: str, run: Path) -> None:
    with pytest.raises(ValueError, match="choose another folder with --out") as caught:
        bench("gradient", out=run, **(FEW | other))
    assert words in str(caught.value)


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"is not a run of saliometer \(no run.json in it\): choose another folder"):
        bench("gradient", out=tmp_path, **FEW)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(ValueError, match="is a file: --out wants a folder"):
        bench("gradient", out=tmp_path / "run", **FEW)


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write to '.*' \(Not a directory\): choose another folder with --out"):
        bench("gradient", out=tmp_path / "file" / "run", **FEW)


def test_a_run_of_another_version_is_not_mixed_with_this_one(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"saliometer": "0.0.9"}))
    with pytest.raises(ValueError, match=r"was made by saliometer 0\.0\.9, this is .*: numbers of two versions"):
        bench("gradient", out=run, **FEW)


def test_a_run_of_another_benchmark_version_is_refused(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    manifest["fixed"]["task"] = "textbox-0"
    (run / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match='holds a run with task "textbox-0", you asked for "textbox-1"'):
        bench("gradient", out=run, **FEW)


def test_a_run_in_another_format_is_refused_with_the_version_that_reads_it(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(manifest | {"format": 99, "saliometer": "9.0"}))
    with pytest.raises(ValueError, match=r"Install saliometer==9\.0 to read it"):
        opened(run)


def test_a_broken_manifest_is_refused(run: Path) -> None:
    (run / "run.json").write_text("{")
    with pytest.raises(ValueError, match="cannot read"):
        opened(run)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no run folder"):
        opened(tmp_path / "nowhere")


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_shipped_weights_are_those_of_their_cards(setting: str) -> None:
    card = shipped.card(setting)
    model = shipped.load(setting)
    assert model.fingerprint == card["sha256"]
    assert card["accepted"]
    assert card["accuracy"] >= 0.998
    assert min(card["accuracy_per_bucket"].values()) >= 0.90


def test_corrupt_weights_are_refused(tmp_path: Path) -> None:
    for ending in (".safetensors", ".json"):
        data = (shipped.FOLDER / f"simple-fr{ending}").read_bytes()
        (tmp_path / f"simple-fr{ending}").write_bytes(data)
    path = tmp_path / "simple-fr.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"are corrupt: sha256 \w{12}, their card says \w{12}\. Reinstall"):
        bench("gradient", out=tmp_path / "run", models=tmp_path, **FEW)


def test_missing_weights_are_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no readable card"):
        bench("gradient", out=tmp_path / "run", models=tmp_path, **FEW)


def test_two_processes_that_begin_one_run_keep_the_methods_of_both(tmp_path: Path) -> None:
    first, second = (Run(tmp_path / "run", {"settings": []}, {}) for _ in range(2))  # neither sees the other begin
    for run, method in ((first, "a"), (second, "b")):
        run.manifest["methods"][method] = {"key": method, "own": False, "control": False}
        run.keep()
    first.keep()
    assert set(read_manifest(tmp_path / "run")["methods"]) == {"a", "b"}


def test_a_file_that_another_process_is_writing_is_written_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "rows.partial").mkdir()  # in the way, if all wrote to one place
    put(tmp_path / "rows", b"mine")
    assert (tmp_path / "rows").read_bytes() == b"mine"


def test_a_file_that_cannot_be_written_is_called_by_its_name_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    with pytest.raises(OSError, match=r"/rows'$"):
        put(tmp_path / "rows", b"mine")
    assert [one.name for one in tmp_path.iterdir()] == ["rows"]


def test_a_run_of_another_kind_is_refused_by_its_kind(tmp_path: Path) -> None:
    Run(tmp_path / "run", {"settings": ["photos"], "kind": "audit"}, {}).keep()
    with pytest.raises(ValueError, match="holds a run of kind audit, this is bench: choose another folder with --out"):
        bench("gradient", out=tmp_path / "run", **FEW)


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]"])
def test_another_programs_run_json_is_told_as_that(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="is not a run of saliometer"):
        opened(tmp_path)
