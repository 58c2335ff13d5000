"""`saliometer serve`: every run is listed, broken ones too; nothing outside the folder is read, no other host heard."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from run_toys import toy_audit, toy_bench
from saliometer.cli import app
from saliometer.serve.app import app_of

VALUES = {"good": [0.8, 0.9, 0.7], "random": [0.1, 0.2, 0.1]}


class Cells(HTMLParser):
    """The table's rows as text, its links, and all tags of the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open = True
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "a":
            self.links.append(dict(attributes)["href"])

    def handle_endtag(self, tag):
        self.open = self.open and tag != "table"

    def handle_data(self, data):
        if self.open and self.rows and self.rows[-1] and data.strip():
            self.rows[-1][-1] += data.strip()


def client(folder: Path, host: str = "127.0.0.1:8420") -> TestClient:
    return TestClient(app_of(folder), base_url=f"http://{host}")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with an old benchmark, a newer audit deeper down, and a secret beside it."""
    old = toy_bench(tmp_path / "runs" / "old", VALUES)
    old.manifest["created"] = "2024-01-01T00:00:00Z"
    old.keep()
    new = toy_audit(tmp_path / "runs" / "deep" / "er" / "new one", {"deletion": VALUES}, count=40)
    new.manifest["created"] = "2025-01-01T00:00:00Z"
    new.keep()
    (tmp_path / "secret.txt").write_text("SECRET")
    toy_bench(tmp_path / "outside", VALUES)
    return tmp_path / "runs"


def test_every_run_is_listed_newest_first(runs: Path) -> None:
    answer = client(runs).get("/")
    assert answer.status_code == 200
    _, first, second = Cells(answer.text).rows
    assert first[:7] == [
        "deep/er/new one", "audit", "net on photos", "1, and 1 controls", "40", "2025-01-01 00:00",
        "not finished: 2 of 4",
    ]  # fmt: skip
    assert second[:7] == [
        "old", "bench", "simple-fr", "1, and 1 controls", "3 of each bucket", "2024-01-01 00:00", "finished",
    ]  # fmt: skip
    assert Cells(answer.text).links == ["/report/deep/er/new%20one", "/report/old"]


def test_a_study_is_listed_with_its_parts(tmp_path: Path) -> None:
    toy_audit(tmp_path / "study" / "label", {"deletion": VALUES})
    toy_audit(tmp_path / "study" / "least", {"deletion": VALUES}, count=40)
    (tmp_path / "study" / "study.json").write_text(json.dumps({"study": "zhang", "scale": "smoke"}))
    rows = {row[0]: row for row in Cells(client(tmp_path).get("/").text).rows[1:]}
    assert set(rows) == {"study", "study/label", "study/least"}
    assert rows["study"][1:5] == ["study zhang", "scale smoke, net on photos", "2", "40"]
    assert rows["study"][6] == "not finished: 1 of 2 parts"


def test_a_report_is_made_when_asked_for_and_again_when_rows_have_come(runs: Path) -> None:
    page = runs / "old" / "report.html"
    here = client(runs)
    assert not page.exists()
    answer = here.get("/report/old")
    assert answer.status_code == 200, answer.text
    assert "<title>saliometer: old</title>" in answer.text
    assert answer.text == page.read_text(encoding="utf-8")
    page.write_text("kept", encoding="utf-8")
    assert here.get("/report/old").text == "kept"
    rows = next((runs / "old").rglob("*.parquet"))
    later = page.stat().st_mtime + 10
    os.utime(rows, (later, later))
    assert "<title>saliometer: old</title>" in here.get("/report/old").text


def test_the_list_tells_the_verdicts_first_sentence_once_there_is_a_report(runs: Path) -> None:
    here = client(runs)
    assert Cells(here.get("/").text).rows[2][7] == "open its report to see"
    here.get("/report/old")
    said = Cells(here.get("/").text).rows[2][7]
    assert said.startswith("good leads: on average 80.0 % of its attribution lies on the objects that decide")
    assert said.endswith("decide (95 % interval 70.0 to 90.0).")
    assert client(runs / "old").get("/report/").status_code == 200  # the folder may be a run itself


def test_a_broken_run_is_listed_with_its_error_and_hides_no_other(runs: Path) -> None:
    for name, text in (("half", '{"format": 1'), ("future", '{"format": 99, "saliometer": "9.0"}'), ("list", "[1]")):
        (runs / name).mkdir()
        (runs / name / "run.json").write_text(text)
    (runs / "bare").mkdir()
    (runs / "bare" / "run.json").write_text('{"format": 1, "saliometer": "0.1.0"}')
    rows = {row[0]: row for row in Cells(client(runs).get("/").text).rows[1:]}
    assert len(rows) == 6
    assert "cannot read" in rows["half"][2]
    assert "was made by saliometer 9.0" in rows["future"][2]
    assert "Cannot be read: KeyError" in rows["bare"][2]
    answer = client(runs).get("/report/half")
    assert answer.status_code == 500
    assert answer.headers["content-type"].startswith("text/plain")
    assert "The report of 'half' could not be made: cannot read" in answer.text


def test_an_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    text = client(tmp_path).get("/").text
    assert "There is no run in" in text
    assert "saliometer bench --per-bucket 2 --setting simple-fr" in text
    assert "<script" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/report/../secret.txt", "/report/%2e%2e/outside", "/report/..%2foutside", "/report/%2e%2e%2foutside",
        "/report/old/../../outside", "/report/old/%2e%2e/%2e%2e/outside", "/report/old%2f..%2f..%2foutside",
        "/report//etc/passwd", "/report/%2fetc%2fpasswd", "/report/..%5coutside", "/report/%00", "/report/old%00",
        "/report/link", "/report/old/rows", "/report/old/run.json", "/report/nowhere", "/report/" + "x" * 5000,
        "/report/", "/secret.txt", "/../secret.txt",
    ],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(runs: Path, path: str) -> None:
    (runs / "link").symlink_to(runs.parent / "outside")
    answer = client(runs).get(path)
    assert answer.status_code == 404
    assert "SECRET" not in answer.text
    assert not (runs.parent / "outside" / "report.html").exists()


def test_an_absolute_path_to_a_real_run_outside_is_refused(runs: Path) -> None:
    outside = runs.parent / "outside"
    assert client(runs).get(f"/report/{outside}").status_code == 404
    assert client(runs).get(f"/report/{str(outside).replace('/', '%2f')}").status_code == 404


def test_links_that_lead_out_are_not_followed(runs: Path) -> None:
    outside = runs.parent / "outside"
    (runs / "link").symlink_to(outside)
    (runs / "fake").mkdir()
    (runs / "fake" / "run.json").symlink_to(outside / "run.json")
    (runs / "old" / "report.html").symlink_to(runs.parent / "secret.txt")
    here = client(runs)
    assert [row[0] for row in Cells(here.get("/").text).rows[1:]] == ["deep/er/new one"]
    for name in ("link", "fake", "old"):
        answer = here.get(f"/report/{name}")
        assert answer.status_code == 404
        assert "SECRET" not in answer.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8420", 200), ("localhost:8420", 200), ("localhost", 200), ("evil.example", 400),
        ("127.0.0.1.evil.example", 400), ("192.168.0.2:8420", 400), ("", 400),
    ],
)  # fmt: skip
def test_only_this_machines_names_are_heard(runs: Path, host: str, status: int) -> None:
    for path in ("/", "/report/old"):
        assert client(runs).get(path, headers={"Host": host}).status_code == status


def test_only_reading_is_possible(runs: Path) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client(runs).request(method, "/report/old").status_code == 405
    assert not (runs / "old" / "report.html").exists()


def test_the_pages_may_load_nothing_and_run_only_their_own_script(runs: Path) -> None:
    one, two = (client(runs).get("/") for _ in range(2))
    policy = one.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    nonce = re.search(r"script-src 'nonce-([^']+)'", policy).group(1)
    assert one.text.count(f'nonce="{nonce}"') == 2
    assert nonce not in two.text
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in client(runs).get("/report/old").headers["content-security-policy"]
    for answer in (one, client(runs).get("/report/old"), client(runs).get("/report/no")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_names_and_errors_stay_text(tmp_path: Path) -> None:
    nasty = '<script>alert("x")<'
    toy_audit(tmp_path / nasty, {"deletion": VALUES}, model=nasty)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text(f'{{"format": {json.dumps(nasty)}, "saliometer": {json.dumps(nasty)}}}')
    text = client(tmp_path).get("/").text
    cells = Cells(text)
    assert cells.tags.count("script") == 1
    assert nasty not in text
    rows = {row[0]: row for row in cells.rows[1:]}
    assert rows[nasty][2] == f"{nasty} on photos"
    assert f"saliometer {nasty}" in rows["bad"][2]
    assert client(tmp_path).get(cells.links[0]).status_code == 200
    answer = client(tmp_path).get("/report/" + "%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")


def test_a_missing_folder_or_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "there is no folder" in result.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", str(port)])
    assert result.exit_code == 2
    assert f"cannot listen on port {port}" in result.stderr
    result = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", "70000"])
    assert "--port 70000: wanted 1 to 65535" in result.stderr


def test_the_command_listens_on_this_machine_alone_and_stops_on_ctrl_c(runs: Path) -> None:
    command = [sys.executable, "-m", "saliometer", "serve", str(runs), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert url, (line, process.stderr.read() if process.poll() is not None else "")
        with urllib.request.urlopen(url.group(), timeout=30) as answer:
            assert b"deep/er/new one" in answer.read()
        if sys.platform == "linux":
            port = f"{int(url.group(1)):04X}"
            listening = [
                row.split()[1] for row in Path("/proc/net/tcp").read_text().splitlines() if row.split()[3] == "0A"
            ]
            assert [place for place in listening if place.endswith(f":{port}")] == [f"0100007F:{port}"]
        process.send_signal(2)
        out, error = process.communicate(timeout=30)
        assert process.returncode == 0, error
        assert "Stopped." in out
        assert "Traceback" not in error
    finally:
        if process.poll() is None:
            process.kill()
            time.sleep(0.1)


def test_a_folder_that_cannot_be_written_to_is_shown_all_the_same(runs, monkeypatch):
    monkeypatch.setattr("saliometer.serve.app.os.access", lambda folder, kind: False)
    page = runs / "old" / "report.html"
    page.unlink(missing_ok=True)
    found = client(runs).get("/report/old")
    assert found.status_code == 200
    assert 'id="board"' in found.text
    assert not page.exists()
