"""A study's page in a real browser: groups of figures are folded away, and drawn when they are opened."""

from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe

from saliometer.report import bench
from saliometer.report.book import Book
from saliometer.report.figures import drawn
from saliometer.report.page import put_page
from saliometer.studies._smerf_study import Study
from yona_toys import study as causal_study

COUNT = "group => document.querySelectorAll(`#${group}-group [data-chart] svg`).length"


@pytest.fixture(scope="module")
def page_of_a_study(benchmark_run, tmp_path_factory):
    """Black alone: toys, overlap, buckets and maps."""
    study = Study(benchmark_run.folder, "small", {"black": benchmark_run})
    folder = tmp_path_factory.mktemp("study")
    return put_page(replace(bench.book(benchmark_run), figures=drawn("smerf", study)), folder / "report.html")


@pytest.mark.parametrize("width", [1280, 390])
def test_a_group_is_drawn_when_it_is_opened(open_page, page_of_a_study, width):
    opened = open_page(page_of_a_study, width=width)
    page = opened.page
    assert page.evaluate(COUNT, "smerf_14") == 0
    page.click("#smerf_14-group > details > summary")
    page.locator("#smerf_16").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    assert page.evaluate(COUNT, "smerf_14") >= 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.errors == []


def test_a_link_into_a_group_opens_it(open_page, page_of_a_study):
    page = open_page(page_of_a_study).page
    page.evaluate("location.hash = 'smerf_22'")
    page.wait_for_timeout(2000)  # it scrolls there smoothly
    assert page.evaluate("document.querySelector('#smerf_22-group > details').open")
    assert page.evaluate(COUNT, "smerf_22") >= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_open_groups(open_page, page_of_a_study, scheme):
    page = open_page(page_of_a_study, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('section[id$=-group] > details').forEach((one) => { one.open = true; })")
    page.locator("#smerf_25").scroll_into_view_if_needed()
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["target"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []


@pytest.fixture(scope="module")
def causal_page(tmp_path_factory):
    """Cards, charts and tables of the causal study, from made-up rows."""
    made = drawn("yona", causal_study())
    book = Book(
        "yona", "toy", "Sanity checks", "2021", ["Said."], [], [], [], [], None, [], figures=made, figures_first=True
    )  # fmt: skip
    return put_page(book, tmp_path_factory.mktemp("yona") / "report.html")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_causal_study_fits_its_window_and_begins_with_pictures(open_page, causal_page, width):
    opened = open_page(causal_page, width=width)
    page = opened.page
    first = page.evaluate("[...document.querySelectorAll('main > section')].map((one) => one.id).slice(0, 3)")
    assert first == ["yona_1", "yona_3", "yona_4"]
    page.locator("#yona_energy").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    assert page.evaluate("document.querySelectorAll('#yona_energy [data-chart] svg').length") == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.errors == []
    assert opened.requests[1:] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_the_causal_study(open_page, causal_page, scheme):
    page = open_page(causal_page, color_scheme=scheme).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    found = Axe().run(page).response["violations"]
    serious = [(one["id"], one["nodes"][0]["target"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
