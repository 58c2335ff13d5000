"""`saliometer show`: the numbers are those of the rows, for a terminal, a pipe and a program."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from run_toys import toy_audit, toy_bench
from saliometer.cli import app
from saliometer.engine.estimate import Estimate
from saliometer.engine.run import Unit, opened
from saliometer.show_audit import announce
from saliometer.show_study import show_claims
from saliometer.summary import Scores

VALUES = {
    "good": [0.8, 0.9, 0.7, 0.8], "twin": [0.8, 0.9, 0.7, 0.8], "poor": [0.1, 0.2, 0.3, 0.2],
    "random": [0.05, 0.04, 0.06, 0.05], "edge": [0.4, 0.5, 0.4, 0.5], "oracle": [1.0] * 4,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of pytest-xdist set it


def call(*words: object, **environment: str) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env=environment)


def line_of(output: str, method: str) -> list[str]:
    return next(line.split() for line in output.splitlines() if line.split()[1:2] == [method])


def test_the_table_prints_the_numbers_of_the_rows(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES)
    result = call("show", run.folder)
    assert result.exit_code == 0, result.output
    scores = Scores(run.rows(), "pafl", "clean")
    for method in VALUES:
        found = scores.estimate(method, scores.of("all"))
        half = max(found.high - found.value, found.value - found.low)
        assert line_of(result.stdout, method)[2:5] == [f"{100 * found.value:.1f}", "±", f"{100 * half:.1f}"]
    assert [line_of(result.stdout, method)[2] for method in ("good", "poor", "edge")] == ["80.0", "20.0", "45.0"]
    ranks = {method: line_of(result.stdout, method)[0] for method in VALUES}
    assert ranks == {
        "good": "1=", "twin": "1=", "poor": "3", "random": "control", "edge": "control", "oracle": "ceiling",
    }  # fmt: skip
    assert result.stdout.splitlines()[0].startswith("good and twin tie for the lead: on average 80.0 %")
    assert "poor is no better than the edges of the image" in result.stdout.splitlines()[1]
    assert "Not finished" not in result.stdout


def test_bench_and_show_print_the_same(tmp_path: Path) -> None:
    words = ["bench", "--method", "gradient", "--setting", "simple-fr", "--per-bucket", "1", "--out", tmp_path / "run"]
    first = call(*words)
    assert first.exit_code == 0, first.output
    assert call("show", tmp_path / "run").stdout == first.stdout


def test_a_pipe_gets_plain_text_that_is_not_cut(tmp_path: Path) -> None:
    long = "smooth_grad(" + ",".join(f"parameter_{i}={i}" for i in range(12)) + ")"
    run = toy_bench(tmp_path / "run", VALUES | {long: [0.5] * 4, "[red]x[/red]": [0.3] * 4})
    plain = call("show", run.folder).stdout
    assert "\x1b" not in plain
    assert not set("│┃─━┏┓") & set(plain)
    assert any(long in line and "50.0 ± 0.0" in line for line in plain.splitlines())
    assert line_of(plain, "[red]x[/red]")[2] == "30.0"
    assert "\x1b[2m" in call("show", run.folder, FORCE_COLOR="1", TERM="xterm").stdout  # controls are dim


def test_json_holds_the_same_for_programs(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES)
    told = json.loads(call("show", run.folder, "--json").stdout)
    assert told["finished"] is True
    assert told["report"] is None
    good = next(s for s in told["standings"] if s["method"] == "good")
    assert good["mean"]["value"] == pytest.approx(0.8)
    assert good["rank"] == 1
    assert told["verdict"][0].startswith("good and twin tie for the lead")


def test_a_run_that_is_not_finished_says_so_and_shows_what_is_there(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES, scored=["good", "random"])
    result = call("show", run.folder)
    assert result.stdout.startswith("Not finished: This run is not finished: 2 of 6 units are scored")
    assert line_of(result.stdout, "good")[2] == "80.0"
    assert json.loads(call("show", run.folder, "--json").stdout)["finished"] is False


def test_a_run_without_rows_has_no_table(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES, scored=[])
    result = call("show", run.folder)
    assert result.exit_code == 0, result.output
    assert "0 of 6 units are scored" in result.stdout
    assert "PAFL" not in result.stdout
    assert json.loads(call("show", run.folder, "--json").stdout)["standings"] == []


def test_failures_are_read_from_the_folder(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES | {"mine": [0.0] * 4, "odd": [0.0] * 4}, scored=[*VALUES])
    for method, text in (
        ("mine", "ValueError: no such hook\nin two lines"),
        ("odd", "saliometer.graph.UnfitError: no layer"),
    ):
        path = run.failure(Unit("simple-fr", 0, 128), method)
        path.parent.mkdir(parents=True)
        path.write_text(f'Traceback (most recent call last):\n  File "x.py", line 1\n{text}\n')
    result = call("show", run.folder)
    assert "Failed: mine: ValueError: no such hook in two lines" in result.stdout
    assert "Left out: odd: UnfitError: no layer" in result.stdout
    assert "Traceback" not in result.stdout
    assert "Not finished" not in result.stdout  # a failure is an end


AUDIT = {
    "insertion": {"good": [0.8, 0.9, 0.7], "poor": [0.1, 0.2, 0.1], "random": [0.3, 0.4, 0.3]},
    "deletion": {"good": [0.1, 0.2, 0.1], "poor": [0.5, 0.6, 0.5], "random": [0.4, 0.5, 0.4]},
}


def test_an_audit_shows_its_verdict_and_ranks(tmp_path: Path) -> None:
    run = toy_audit(tmp_path / "run", AUDIT)
    result = call("show", run.folder)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("good holds up best: better than every control that never sees the model (random)")
    assert line_of(result.stdout, "good")[:3] == ["1", "good", "80.0"]
    assert line_of(result.stdout, "poor")[:3] == ["2", "poor", "13.3"]
    assert line_of(result.stdout, "random")[0] == "control"
    told = json.loads(call("show", run.folder, "--json").stdout)
    assert told["finished"] is True
    cell = next(c for c in told["table"] if (c["metric"], c["method"]) == ("deletion", "poor"))
    assert cell["value"] == pytest.approx(1.6 / 3)


def test_methods_that_beat_the_controls_as_often_share_a_rank(tmp_path: Path) -> None:
    twins = {metric: {**some, "twin": some["good"]} for metric, some in AUDIT.items()}
    result = call("show", toy_audit(tmp_path / "run", twins).folder)
    assert {m: line_of(result.stdout, m)[0] for m in ("good", "twin", "poor")} == {
        "good": "1=",
        "twin": "1=",
        "poor": "3",
    }


def test_a_metric_that_broke_is_told_with_its_method(tmp_path: Path) -> None:
    run = toy_audit(tmp_path / "run", AUDIT)
    path = run.failure(Unit("photos", 0, 32), "good")
    path.parent.mkdir(parents=True)
    path.write_text("deletion: Traceback (most recent call last):\n  File\nRuntimeError: broke: here\n")
    result = call("show", run.folder)
    assert "Failed: good, deletion: RuntimeError: broke: here" in result.stdout
    assert "Not finished" not in result.stdout


def test_an_audit_that_is_not_finished_says_so(tmp_path: Path) -> None:
    run = toy_audit(tmp_path / "run", AUDIT, count=40)  # a second unit of 32 is missing
    assert "3 of 6 units are scored" in call("show", run.folder).stdout


def test_a_study_shows_the_state_of_its_parts(tmp_path: Path) -> None:
    toy_audit(tmp_path / "label", AUDIT, count=40)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    (tmp_path / "study.json").write_text(
        json.dumps({"study": "zhang", "scale": "smoke", "labelled": True, "pixels": 64})
    )
    result = call("show", tmp_path)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "The study zhang at scale smoke."
    assert "No part of it is finished, so no claim can be judged yet." in lines
    assert "label: not finished, 3 of 6" in lines
    assert any(line.startswith("broken: cannot be read: cannot read") for line in lines)
    told = json.loads(call("show", tmp_path, "--json").stdout)
    assert [part["name"] for part in told["parts"]] == ["broken", "label"]
    assert told["claims"] == []


def test_claims_are_counted_and_whole(capsys: pytest.CaptureFixture[str]) -> None:
    from saliometer.show import screen

    claims = [
        {"id": i, "text": f"claim {i} " + "x" * 90, "paper": "1 < 2", "ours": "[1]", "holds": holds, "why": "w"}
        for i, holds in enumerate((True, False, None, None))
    ]
    show_claims(claims, screen())
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Of 4 claims 1 hold, 1 fail, 2 are open."
    assert lines[2].split() == ["0", "holds", "claim", "0", "x" * 90, "1", "<", "2", "[1];", "w"]


@pytest.mark.parametrize("command", ["show", "rows", "compare-definitions"])
def test_a_folder_of_runs_names_them(tmp_path: Path, command: str) -> None:
    toy_bench(tmp_path / "one", VALUES)
    result = call(command, tmp_path)
    assert result.exit_code == 2
    assert f"is a folder of runs, not a run: name one, such as '{tmp_path / 'one'}'" in result.stderr


def test_showing_writes_nothing(tmp_path: Path) -> None:
    run = toy_bench(tmp_path / "run", VALUES)
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    call("show", run.folder)
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    assert opened(run.folder).manifest == run.manifest


@pytest.mark.parametrize(("left", "words"), [(5, "5 images, "), (3, "3 of 5 images, ")])
def test_what_is_about_to_happen_is_what_is_left(left: int, words: str) -> None:
    expected = Estimate(90.0, 1234, left, {}, {})
    assert announce(expected, [None] * 5, 2) == f"{words}2 methods: 1,234 passes, about 1 min 30 s on this machine."  # type: ignore[arg-type]
