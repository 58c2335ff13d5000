"""`saliometer report`: one run, several as one, one against another; where the page goes and how it is opened."""

import webbrowser
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from run_toys import toy_audit, toy_bench
from saliometer.cli import app

ONE = {"a": [0.8, 0.9, 0.7], "random": [0.1, 0.2, 0.1]}
TWO = {"b": [0.3, 0.2, 0.4], "random": [0.1, 0.2, 0.1]}


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return toy_bench(tmp_path / "one", ONE).folder, toy_bench(tmp_path / "two", TWO).folder


def title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("<title>")[2].partition("</title>")[0]


def test_one_run_gets_report_html_in_its_folder(runs: tuple[Path, Path]) -> None:
    result = call("report", runs[0])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(runs[0] / "report.html")
    assert title(runs[0] / "report.html") == "saliometer: one"


def test_several_runs_share_a_page_in_the_first_folder(runs: tuple[Path, Path]) -> None:
    result = call("report", *runs)
    assert result.exit_code == 0, result.output
    page = runs[0] / "report-merged.html"
    assert result.stdout.strip() == str(page)
    assert title(page) == "saliometer: one + two"
    assert not (runs[0] / "report.html").exists()


def test_the_same_run_twice_is_one(runs: tuple[Path, Path]) -> None:
    assert call("report", runs[0], runs[0]).stdout.strip() == str(runs[0] / "report.html")


def test_a_comparison_has_a_page_of_its_own(runs: tuple[Path, Path]) -> None:
    result = call("report", runs[0], "--compare", runs[1])
    assert result.exit_code == 0, result.output
    page = runs[0] / "report-compared.html"
    assert result.stdout.strip() == str(page)
    assert '<section id="against">' in page.read_text(encoding="utf-8")


def test_out_says_where_the_page_goes(runs: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    assert call("report", *runs, "--out", page).stdout.strip() == str(page)
    assert title(page) == "saliometer: one + two"
    refused = call("report", runs[0], "--out", tmp_path)
    assert refused.exit_code == 2
    assert "the report wants a file" in refused.stderr


def test_an_audit_gets_its_page(tmp_path: Path) -> None:
    run = toy_audit(tmp_path / "run", {"deletion": ONE})
    assert call("report", run.folder).exit_code == 0
    assert "Which saliency maps hold up on net?" in (run.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("browser", [True, False, None])
def test_open_shows_the_page_or_says_where_it_is(
    runs: tuple[Path, Path], browser: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def shown(url: str) -> bool:
        seen.append(url)
        if browser is None:
            raise webbrowser.Error("could not locate runnable browser")
        return browser

    monkeypatch.setattr(webbrowser, "open", shown)
    result = call("report", runs[0], "--open")
    url = (runs[0] / "report.html").resolve().as_uri()
    assert result.exit_code == 0
    assert seen == [url]
    assert (f"No browser was found here: open {url} in one." in result.stderr) == (not browser)


def test_without_open_no_browser_is_asked(runs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("asked for a browser"))
    assert call("report", runs[0]).exit_code == 0


def test_runs_that_cannot_be_merged_are_refused_in_a_sentence(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = toy_bench(tmp_path / "other", TWO, seed=5).folder
    result = call("report", runs[0], other)
    assert result.exit_code == 2
    assert "seed 0 and 5" in result.stderr
    assert f"saliometer report {runs[0]} --compare {other}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_study_is_neither_merged_nor_compared(runs: tuple[Path, Path], tmp_path: Path) -> None:
    study = tmp_path / "study"
    toy_audit(study / "label", {"deletion": ONE})
    (study / "study.json").write_text("{}")
    for words in (("report", study, runs[0]), ("report", runs[0], "--compare", study)):
        result = call(*words)
        assert result.exit_code == 2
        assert f"is a study, which is neither merged nor compared: name its runs, '{study / 'label'}'" in result.stderr


def test_a_folder_of_runs_names_them(runs: tuple[Path, Path], tmp_path: Path) -> None:
    result = call("report", tmp_path)
    assert result.exit_code == 2
    assert f"is a folder of runs, not a run: name one, such as '{runs[0]}', '{runs[1]}'" in result.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("show", ["Print what a run found", "--json", "plain text"]),
        ("report", ["--compare", "--open", "--out", "report-merged.html", "measured the same", "report-compared.html"]),
        ("serve", ["--port", "8420", "127.0.0.1", "Ctrl-C", "runs"]),
    ],
)
def test_the_help_teaches(command: str, words: list[str]) -> None:
    text = " ".join(call(command, "--help").stdout.replace("│", " ").split())
    assert all(word in text for word in words), text
