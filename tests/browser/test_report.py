"""The report in a real browser: it loads alone and quietly, its controls work, names stay text, all can read it."""

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image

from browser_toys import NASTY
from saliometer.pages import written

KINDS = ("benchmark", "audit", "big")


@pytest.fixture(params=KINDS)
def any_report(request) -> Path:
    return request.getfixturevalue(request.param)


def rows(page, table: str = "#board") -> list[str]:
    """The methods that are seen, from top to bottom."""
    return page.eval_on_selector_all(f"{table} tbody tr:not([hidden])", "all => all.map(row => row.dataset.method)")


def column(page, label: str) -> list[float]:
    """The values of a column as they stand."""
    return page.evaluate(
        """label => {
            const board = document.getElementById("board");
            const named = (head) => !head.hidden && head.querySelector("button")?.textContent === label;
            const place = [...board.tHead.rows[0].cells].findIndex(named);
            return [...board.tBodies[0].rows].map((row) => row.cells[place]?.dataset.value).filter(Boolean).map(Number);
        }""",
        label,
    )


def downloaded(page, click: str) -> bytes:
    with page.expect_download() as caught:
        page.click(click)
    return Path(caught.value.path()).read_bytes()


def painted(page) -> None:
    """Wait until a map is there. (Playwright's own waiting evaluates strings, which the page forbids.)"""
    page.evaluate(
        """async () => {
            const maps = () => [...document.querySelectorAll("#gallery canvas")];
            for (let turn = 0; turn < 200 && !maps().some((one) => one.width > 1); turn += 1) {
                await new Promise((done) => setTimeout(done, 25));
            }
        }"""
    )


def whole(page) -> None:
    """Go through the page, so that all that waits to be seen is drawn."""
    page.evaluate(
        """async () => {
            for (let at = 0; at < document.body.scrollHeight; at += 600) {
                scrollTo({ top: at, behavior: "instant" });
                await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30)));
            }
            scrollTo({ top: 0, behavior: "instant" });
        }"""
    )


def test_it_loads_alone_and_without_complaint(open_page, any_report):
    found = open_page(any_report)
    for details in found.page.query_selector_all("details"):
        details.evaluate("one => { one.open = true; }")
    whole(found.page)
    assert found.errors == []
    outside = [url for url in found.requests if not url.startswith(("data:", "blob:"))]
    assert outside == [any_report.resolve().as_uri()]
    assert found.page.title().startswith("saliometer: ")  # no name turned into a script


def test_the_policy_lets_nothing_out(open_page, benchmark):
    page = open_page(benchmark).page
    blocked = page.evaluate(
        """() => Promise.allSettled([fetch("http://127.0.0.1:9/"), new Promise((done, fail) => {
            const image = new Image(); image.onload = done; image.onerror = fail; image.src = "http://127.0.0.1:9/a.png";
        })]).then((all) => all.map((one) => one.status))"""
    )
    assert blocked == ["rejected", "rejected"]
    seen = page.evaluate(
        """() => new Promise((done) => {
            document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
            fetch("http://127.0.0.1:9/").catch(() => {});
        })"""
    )
    assert seen == "connect-src"


def test_every_chart_is_drawn(open_page, benchmark):
    page = open_page(benchmark).page
    for details in page.query_selector_all("details"):
        details.evaluate("one => { one.open = true; }")
    whole(page)
    page.wait_for_timeout(200)
    empty = page.eval_on_selector_all(
        ".drawn",
        "all => all.filter(one => !one.querySelector('svg path, svg text')).map(one => one.dataset.chart ?? one.id)",
    )
    assert empty == []
    drawn = set(page.eval_on_selector_all("[data-chart]", "all => all.map(one => one.dataset.chart)"))
    for name in ("smerf_2-0", "smerf_6a-0", "smerf_6b-0", "smerf_7-0", "smerf_8a-0", "smerf_8b-0"):
        assert name in drawn
        assert name.replace("-", "-authors-", 1) in drawn


def test_columns_sort_both_ways_and_undefined_ones_come_last(open_page, benchmark):
    page = open_page(benchmark).page
    first = rows(page)
    page.click('#board button:text-is("pafl"):visible')
    values = column(page, "pafl")
    assert values == sorted(values, reverse=True)
    assert rows(page)[-1] == "broken"
    page.click('#board button:text-is("pafl"):visible')
    values = column(page, "pafl")
    assert values == sorted(values)
    assert rows(page)[-1] == "broken"
    head = page.locator("#board th:visible", has=page.locator('button:text-is("pafl")'))
    assert head.get_attribute("aria-sort") == "ascending"
    page.click('#board button:text-is("safl"):visible')
    assert column(page, "safl") == sorted(column(page, "safl"))  # lower is better: best first
    page.click('#board button:text-is("Method")')
    assert rows(page) == sorted(rows(page), key=str.lower)
    page.click('#board button:text-is("#")')
    assert rows(page) == first


def test_methods_are_found_and_controls_and_definitions_chosen(open_page, benchmark):
    page = open_page(benchmark).page
    page.fill("#find", "GRAD")
    assert set(rows(page)) == {"gradient", "input_x_gradient", "grad_cam"}
    page.fill("#find", "")
    page.uncheck("#controls")
    assert not {"random", "edge", "oracle"} & set(rows(page))
    clean = column(page, "pafl")
    page.select_option("#stage", "authors")
    assert column(page, "pafl") != clean
    page.select_option("#kind", "focus")
    seen = page.eval_on_selector_all("#board th.head:not([hidden]) button", "all => all.map(one => one.textContent)")
    assert seen[0] == "pafl"
    assert "piou" not in seen


def test_metrics_of_one_definition_are_always_seen(open_page, audit):
    page = open_page(audit).page
    assert not page.query_selector("#stage")  # nothing to choose
    seen = page.eval_on_selector_all("#board th.head:not([hidden]) button", "all => all.map(one => one.textContent)")
    assert {"average_drop", "insertion", "deletion", "sparseness"} <= set(seen)


def test_what_is_seen_of_the_board_can_be_downloaded(open_page, benchmark):
    page = open_page(benchmark).page
    page.fill("#find", "gradient")
    found = list(csv.DictReader(io.StringIO(downloaded(page, "#board-data").decode())))
    assert {row["method"] for row in found} == {"gradient", "input_x_gradient"}
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in found)
    pafl = [float(row["value"]) for row in found if row["metric"] == "pafl"]
    shown = page.eval_on_selector_all(
        "#board tr:not([hidden]) td[data-head='0']", "all => all.map(one => Number(one.dataset.value))"
    )
    assert pafl == shown


def test_ties_controls_and_colours_are_shown(open_page, benchmark):
    page = open_page(benchmark).page
    badges = dict(
        page.eval_on_selector_all(
            "#board .badge", "all => all.map(one => [one.closest('tr').dataset.method, one.textContent])"
        )
    )
    assert badges == {
        "oracle": "ceiling",
        "random": "control",
        "edge": "control",
        "centre": "control",
        "fake_cam": "control",
        NASTY: "yours",
    }
    cells = dict(
        page.eval_on_selector_all(
            "#board td[data-head='0']", "all => all.map(one => [one.closest('tr').dataset.method, one.className])"
        )
    )
    assert "above" in cells["input_x_gradient"]
    assert "below" in cells["grad_cam"]  # worse than the edges of the image
    colours = page.eval_on_selector_all(
        "#board td[data-head='0']", "all => all.map(one => getComputedStyle(one).backgroundColor)"
    )
    assert len(set(colours)) > 2


def test_the_gallery_shows_images_and_methods_with_their_numbers(open_page, benchmark):
    page = open_page(benchmark).page
    page.locator("#look").scroll_into_view_if_needed()
    page.wait_for_selector("#gallery .tile")
    methods = page.eval_on_selector_all("#gallery .tile b", "all => all.map(one => one.textContent)")
    assert methods[0] == "the image"
    assert {"gradient", "grad_cam", "random", NASTY} <= set(methods)
    painted(page)
    page.wait_for_timeout(200)
    there = page.eval_on_selector_all("#gallery canvas", "all => all.filter(one => one.width > 1).length")
    assert there == len(methods) - 1  # the image itself has none; the broken method is not there
    assert "broken" not in methods
    assert page.locator("#gallery .outlines path.primary").count() > 0
    said = page.text_content("#look-said")
    page.click("#look-next")
    assert page.text_content("#look-said") != said
    page.select_option("#look-mode", "method")
    page.select_option("#look-method", label="gradient")
    page.click("#look-worst")
    worst = scores_in(page)
    assert worst == sorted(worst)
    page.click("#look-best")
    assert scores_in(page) == sorted(worst, reverse=True)


def scores_in(page) -> list[float]:
    texts = page.eval_on_selector_all(
        "#gallery .tile figcaption span:nth-of-type(1)", "all => all.map(one => one.textContent)"
    )
    return [float(text.split()[-1]) for text in texts if not text.endswith("–")]


def test_the_slider_goes_from_the_image_to_the_map(open_page, benchmark):
    page = open_page(benchmark).page
    page.locator("#gallery").scroll_into_view_if_needed()
    painted(page)
    alpha = """() => {
        const canvas = [...document.querySelectorAll('#gallery canvas')].find(one => one.width > 1);
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return data.filter((_, place) => place % 4 === 3).reduce((sum, one) => sum + one, 0) / data.length * 4;
    }"""
    opaque = {}
    for share in (0, 50, 100):
        page.fill("#look-blend", str(share))
        opaque[share] = page.evaluate(alpha)
    assert opaque[0] == 0
    assert 0 < opaque[50] < opaque[100] == 255


def test_a_cell_of_the_board_leads_to_its_worst_images(open_page, benchmark):
    page = open_page(benchmark).page
    page.click("#board tr[data-method='grad_cam'] td[data-head='0']")
    page.wait_for_selector("#gallery .tile")
    assert page.input_value("#look-mode") == "method"
    assert "grad_cam on " in page.text_content("#look-said")
    assert "worst first by pafl" in page.text_content("#look-said")


def test_the_keyboard_reaches_everything(open_page, benchmark):
    page = open_page(benchmark).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.focus("#board button[data-sort='name']")
    page.keyboard.press("Enter")
    assert rows(page) == sorted(rows(page), key=str.lower)
    page.focus("#gallery")
    said = page.text_content("#look-said")
    page.keyboard.press("ArrowRight")
    assert page.text_content("#look-said") != said
    page.keyboard.press("ArrowLeft")
    assert page.text_content("#look-said") == said
    page.focus("#gallery .tile:nth-child(2) button")
    page.keyboard.press("Enter")
    assert page.evaluate("document.getElementById('viewer').open")
    name = page.text_content("#viewer-name")
    page.keyboard.press("ArrowDown")
    assert page.text_content("#viewer-name") != name
    assert page.locator("#viewer-scores tbody tr").count() > 10
    page.keyboard.press("Escape")
    assert not page.evaluate("document.getElementById('viewer').open")


def test_two_methods_are_compared_image_by_image(open_page, benchmark, benchmark_run):
    page = open_page(benchmark).page
    page.locator("#compare").scroll_into_view_if_needed()
    page.select_option("#one", label="gradient")
    page.select_option("#other", label="input_x_gradient")
    said = page.text_content("#paired")
    value, low, high = (float(text.replace("−", "-")) for text in re.findall(r"[+−][\d.]+", said)[:3])
    assert low < value < high
    from saliometer.summary import Scores

    scores = Scores(benchmark_run.rows(), "pafl", "clean")
    ours = scores.difference("gradient", "input_x_gradient", scores.of("all"))
    assert abs(value - 100 * ours.value) < 0.06
    assert abs(low - 100 * ours.low) < 1.5  # another bootstrap
    assert abs(high - 100 * ours.high) < 1.5
    assert "input_x_gradient is better" in said
    page.click("#swap")
    assert re.findall(r"[+−][\d.]+", page.text_content("#paired"))[0].replace("+", "−") == f"−{abs(value)}"
    assert page.locator("#disagree figure").count() == 8
    gaps = page.eval_on_selector_all(
        "#disagree figcaption",
        """all => all.map((one) => {
            const [a, b] = [...one.querySelectorAll("span")].map((span) => Number(span.textContent.split(" ").pop()));
            return Math.abs(a - b);
        })""",
    )
    assert all(one >= other - 0.11 for one, other in pairwise(gaps))


def test_two_metrics_are_compared_over_methods_and_images(open_page, audit):
    page = open_page(audit).page
    page.locator("#agree-chart").scroll_into_view_if_needed()
    page.select_option("#across", label="insertion")
    page.select_option("#up", label="deletion")
    said = page.text_content("#agree")
    assert "insertion and deletion over 3 methods, controls left out: rank correlation" in said
    assert "negative" in said
    page.select_option("#points", "images")
    assert "5 images of" in page.text_content("#agree")


def test_charts_can_be_taken_away(open_page, benchmark):
    page = open_page(benchmark).page
    page.locator("#smerf_6a").scroll_into_view_if_needed()
    name = "smerf_6a-0"
    png = downloaded(page, f'[aria-label="Download {name} as PNG"]')
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(png) > 10_000
    svg = downloaded(page, f'[aria-label="Download {name} as SVG"]').decode()
    assert "<svg" in svg
    assert "gradient" in svg
    data = list(csv.DictReader(io.StringIO(downloaded(page, f'[aria-label="Download {name} as data"]').decode())))
    assert {"gradient", "random", f"'{NASTY}" if NASTY.startswith("=") else NASTY} <= {row["method"] for row in data}


def test_pictures_in_a_table_can_be_taken_away_too(open_page, benchmark):
    page = open_page(benchmark).page
    page.locator("#smerf_9").scroll_into_view_if_needed()
    png = downloaded(page, '[aria-label="Download smerf_9 as PNG"]')
    with Image.open(io.BytesIO(png)) as picture:
        colours = np.asarray(picture.convert("RGB")).reshape(-1, 3)
        assert picture.width > 1000
    shares = np.array([(colours < 30).all(1).mean(), (colours > 230).all(1).mean()])
    assert (shares > 0.05).all()  # black images, white maps
    assert len(np.unique(colours @ [65536, 256, 1])) > 100
    assert b"foreignObject" in downloaded(page, '[aria-label="Download smerf_9 as SVG"]')
    data = list(csv.DictReader(io.StringIO(downloaded(page, '[aria-label="Download smerf_9 as data"]').decode())))
    assert len(data) == 4 * 7
    assert {row["setting"] for row in data} >= {"simple-fr", "complex-cr4"}


@pytest.mark.parametrize("kind", ["benchmark", "audit"])
def test_wicked_names_stay_text_also_in_charts_and_tips(open_page, kind, request):
    found = open_page(request.getfixturevalue(kind))
    page = found.page
    assert NASTY in page.eval_on_selector_all("#board tr", "all => all.map(one => one.dataset.method)")
    whole(page)
    chart = page.locator("#agree-chart")
    chart.scroll_into_view_if_needed()
    page.wait_for_selector("#agree-chart svg")
    box = chart.bounding_box()
    for share in range(5, 100, 5):
        page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + box["height"] * 0.5)
    for one in page.query_selector_all("[data-chart]")[:3]:
        one.scroll_into_view_if_needed()
        around = one.bounding_box()
        for share in range(10, 95, 8):
            page.mouse.move(around["x"] + around["width"] / 3, around["y"] + around["height"] * share / 100)
    page.select_option("#one", label=NASTY)
    page.wait_for_timeout(100)
    assert page.locator("img[src='x']").count() == 0
    assert page.title().startswith("saliometer: ")
    assert found.errors == []


def test_failures_are_shown_with_their_traceback(open_page, benchmark):
    page = open_page(benchmark).page
    assert "broken failed" in page.text_content(".banner")
    warning = page.locator("#warnings .warning").first
    assert f"broken on purpose {NASTY}" in warning.text_content()
    assert "Traceback" in warning.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_fault(open_page, any_report, scheme, width):
    found = open_page(any_report, width=width, color_scheme=scheme)
    whole(found.page)
    result = Axe().run(found.page)
    serious = [
        (one["id"], [node["target"] for node in one["nodes"]][:3])
        for one in result.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_dark_and_light_follow_the_machine_and_can_be_chosen(open_page, benchmark):
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = (open_page(benchmark, color_scheme=scheme).page for scheme in ("light", "dark"))
    assert light.evaluate(ground) != dark.evaluate(ground)
    night = dark.evaluate(ground)
    light.click("#theme")
    assert light.text_content("#theme") == "Colours: light"
    light.click("#theme")
    assert light.text_content("#theme") == "Colours: dark"
    assert light.evaluate(ground) == night
    light.locator("#smerf_2 .drawn").scroll_into_view_if_needed()
    light.wait_for_selector("#smerf_2 svg text")
    inks = set(light.eval_on_selector_all("#smerf_2 svg text", "all => all.map(one => one.getAttribute('fill'))"))
    light.click("#theme")
    light.click("#theme")
    again = set(light.eval_on_selector_all("#smerf_2 svg text", "all => all.map(one => one.getAttribute('fill'))"))
    assert inks != again  # charts follow


def test_a_phone_scrolls_tables_not_the_page(open_page, any_report):
    page = open_page(any_report, width=390, height=844, is_mobile=True, has_touch=True).page
    whole(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = page.eval_on_selector_all(
        "main section > *:not(.scroll)",
        "all => all.filter(one => one.getBoundingClientRect().right > 391).map(one => one.id || one.className)",
    )
    assert wide == []


def test_on_a_phone_no_score_and_no_axis_is_cut_off(open_page, any_report):
    page = open_page(any_report, width=390, height=844, is_mobile=True, has_touch=True).page
    whole(page)
    cut = """all => all.filter((one) => {
        const tile = one.closest("figure").getBoundingClientRect();
        return one.getBoundingClientRect().right > tile.right + 1;
    }).map((one) => one.textContent)"""
    assert page.eval_on_selector_all(".tile figcaption span", cut) == []
    chart = page.locator("#paired-chart svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    outside = """(all, right) => all.filter(one => one.getBoundingClientRect().right > right + 1
        || one.getBoundingClientRect().left < 0).map(one => one.textContent)"""
    found = chart.locator("text").evaluate_all(outside, box["x"] + box["width"])
    assert [text for text in found if NASTY not in text] == []  # no line holds a name of 80 letters


def test_print_shows_all_that_waits_to_be_seen(open_page, benchmark, tmp_path):
    page = open_page(benchmark).page
    page.emulate_media(media="print")
    printed = page.pdf(path=str(tmp_path / "report.pdf"), format="A4", landscape=True)
    assert printed[:5] == b"%PDF-"
    assert (
        page.eval_on_selector_all(
            "[data-chart]",
            "all => all.filter(one => !one.closest('details:not([open])') && !one.querySelector('svg')).length",
        )
        == 0
    )
    assert page.locator("nav").first.is_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("kind", ["benchmark", "big"])
def test_a_board_fits_on_paper_and_nothing_stays_folded(open_page, kind, request):
    page = open_page(request.getfixturevalue(kind), width=1040).page  # A4 across, less its margins
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    boards = page.eval_on_selector_all(".printed", "all => all.map(one => one.getBoundingClientRect().right)")
    assert boards
    assert max(boards) <= 1040
    columns = page.eval_on_selector_all(".printed th.head", "all => all.length")
    seen = page.eval_on_selector_all("#board th.head:not([hidden])", "all => all.length")
    assert columns == seen
    methods = "all => all.map(one => one.dataset.method)"
    first = page.eval_on_selector_all(".printed:first-of-type tbody tr", methods)
    assert [name for name in first if name] == [name for name in rows(page) if name != "broken"]
    assert page.locator("details:not([open])").count() == 0
    folded = page.evaluate("dispatchEvent(new Event('afterprint')), document.querySelectorAll('.printed').length")
    assert folded == 0


def test_the_viewer_shows_the_map_under_the_pointer(open_page, benchmark):
    page = open_page(benchmark).page
    page.locator("#gallery").scroll_into_view_if_needed()
    painted(page)
    page.click("#gallery .tile:nth-child(3) button")
    shown = "getComputedStyle(document.querySelector('#viewer-picture canvas')).opacity"
    box = page.locator("#viewer-picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_timeout(300)
    assert page.evaluate(shown) == "1"
    page.click("#viewer-alone")
    page.wait_for_timeout(300)
    assert page.evaluate(shown) == "0"


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("part", ["definitions", "smerf_9", "compare"])
def test_a_link_to_a_part_leads_there(open_page, benchmark, width, part):
    page = open_page(f"{benchmark.resolve().as_uri()}#{part}", width=width, height=800).page
    page.wait_for_timeout(2200)
    top = page.evaluate(f"document.getElementById('{part}').getBoundingClientRect().top")
    bottom = page.evaluate("document.documentElement.scrollHeight - innerHeight - scrollY")
    assert abs(top) < 60 or bottom < 5  # there, or at the end of the page
    page.click("header nav a:text-is('Look')")
    page.wait_for_timeout(2000)
    assert abs(page.evaluate("document.getElementById('look').getBoundingClientRect().top")) < 60


def test_it_opens_fast_and_weighs_little(open_page, big):
    """20 methods x 25 metrics x 500 images: under 2 seconds, the best of three on a busy machine, and 15 MB."""
    assert big.stat().st_size < 15e6
    took = []
    for _ in range(3):
        page = open_page(big).page
        page.wait_for_selector("#board tbody tr")
        page.locator("#look").scroll_into_view_if_needed()
        painted(page)
        load = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        took.append(max(load, page.evaluate("performance.getEntriesByName('ready')[0].startTime")) / 1000)
    assert min(took) < 2
    assert page.locator("#board tbody tr").count() == 20
    assert page.locator("#board th.head").count() == 25
    assert page.eval_on_selector("#look-image", "one => one.options.length") == 100
    sizes = page.eval_on_selector_all("#gallery canvas", "all => all.map(one => one.width)")
    assert max(sizes) == 56


def test_two_runs_side_by_side(open_page, benchmark_run, tmp_path):
    import saliometer

    other = saliometer.bench(["gradient", "grad_cam"], per_bucket=3, out=tmp_path / "other").run
    found = open_page(written([benchmark_run.folder], compare=other.folder, out=tmp_path / "compared.html"))
    page = found.page
    page.locator("#against").scroll_into_view_if_needed()
    methods = page.eval_on_selector_all("#against-table tbody tr", "all => all.map(one => one.dataset.method)")
    assert {"gradient", "grad_cam", "random"} <= set(methods)
    page.wait_for_selector("#against-chart svg")
    assert found.errors == []


def test_the_data_is_json_that_any_reader_takes(benchmark):
    text = benchmark.read_text(encoding="utf-8")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
    assert NASTY in [one["name"] for one in json.loads(data)["methods"]]
