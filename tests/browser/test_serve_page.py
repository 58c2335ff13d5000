"""The list of runs in a real browser: it searches, leads to reports, and asks nobody else for anything."""

import socket
import threading
import time
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe

from browser_toys import NASTY
from run_toys import toy_audit, toy_bench
from saliometer.serve.app import app_of


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    toy_bench(runs / "letters", {"good": [0.8, 0.9, 0.7], "random": [0.1, 0.2, 0.1]})
    toy_audit(runs / "deep" / "pets", {"average_drop": {NASTY: [0.2, 0.3], "random": [0.8, 0.9]}}, model=NASTY)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app_of(Path(runs)), port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(5)


def names(page) -> list[str]:
    return page.eval_on_selector_all("#runs tr:not([hidden]) th", "all => all.map(one => one.textContent)")


def test_runs_are_found_by_any_word(open_page, address):
    page = open_page(address).page
    assert set(names(page)) == {"letters", "deep/pets"}
    page.fill("#search", "SIMPLE bench")
    assert names(page) == ["letters"]
    assert page.text_content("#count") == "1 of 2"
    page.fill("#search", "onerror")
    assert names(page) == ["deep/pets"]
    page.fill("#search", "nothing like it")
    assert names(page) == []


def test_a_name_leads_to_the_report(open_page, address):
    found = open_page(address)
    found.page.click("text=deep/pets")
    found.page.wait_for_selector("#board")
    assert NASTY in found.page.eval_on_selector_all("#board tr", "all => all.map(one => one.dataset.method)")
    assert found.page.title().startswith("saliometer: ")
    assert found.errors == []
    assert all(url.startswith((address, "data:", "blob:")) for url in found.requests)


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_fault_in_the_list(open_page, address, width):
    found = open_page(address, width=width)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    serious = [
        one["id"] for one in Axe().run(found.page).response["violations"] if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert found.errors == []
