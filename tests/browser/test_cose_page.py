"""COSE's figures in a real browser, drawn from the paper's own table."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe

from cose_study_toys import printed
from saliometer.report import bench
from saliometer.report.figures import drawn
from saliometer.report.page import put_page

DRAWN = "name => document.querySelectorAll(`#${name} [data-chart] svg path`).length"


@pytest.fixture(scope="module")
def page_of_cose(benchmark_run, tmp_path_factory):
    e = printed()
    study = SimpleNamespace(evidence=e, trained=e.every, galleries=[])
    book = replace(bench.book(benchmark_run), kind="cose", figures=drawn("cose", study))
    return put_page(book, tmp_path_factory.mktemp("cose") / "report.html")


@pytest.mark.parametrize("width", [1280, 390])
def test_charts_are_drawn_and_fit(open_page, page_of_cose, width):
    opened = open_page(page_of_cose, width=width)
    for name in ("cose_3", "cose_6", "cose_7"):
        opened.page.locator(f"#{name}").scroll_into_view_if_needed()
        opened.page.wait_for_timeout(400)
        assert opened.page.evaluate(DRAWN, name) > 20
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.errors == []


def test_violins_are_filled_shapes(open_page, page_of_cose):
    page = open_page(page_of_cose).page
    page.locator("#cose_3").scroll_into_view_if_needed()
    page.wait_for_timeout(400)
    faint = (
        "[...document.querySelectorAll('#cose_3 svg *')].filter(o => o.getAttribute('fill-opacity') === '0.22').length"
    )
    assert page.evaluate(faint) == 14


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(open_page, page_of_cose, scheme):
    page = open_page(page_of_cose, color_scheme=scheme).page
    found = Axe().run(page, context="#cose_table_1, #cose_gate").response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
