"""The report: its numbers are those of the summary, names stay text, and every kind of run gives a page or says why."""

import base64
import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saliometer import results
from saliometer.engine.bench import METRICS, bench
from saliometer.engine.run import Run, Unit, opened
from saliometer.report import figures, words
from saliometer.report.figures._pictures import map_png
from saliometer.report.page import book_of, write
from saliometer.report.page import page as rendered
from saliometer.summary import Scores, standings
from saliometer.tasks.textbox import BUCKETS, SETTINGS, cycle


def page(run):
    return rendered(book_of(run))


NASTY = '<script>alert("x")</script>'


def broken(model, images, targets):
    raise ValueError("<b>broken</b> on purpose")


def nasty(model, images, targets):
    return images


nasty.__name__ = NASTY


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "tiny"
    return bench([broken, nasty, "gradient"], settings=["simple-fr"], per_bucket=1, out=folder).run


@pytest.fixture(scope="module")
def html(run):
    return page(run)


class Rows(HTMLParser):
    """The cells' text of every row of the first scoreboard, and all text and tags of the page."""

    def __init__(self, html):
        super().__init__()
        self.method, self.cells, self.text, self.tags, self._open = None, {}, "", set(), False
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        given = dict(attributes)
        if tag == "table":
            self._open = given.get("class") == "board" and not self.cells
        if self._open and tag == "tr":
            self.method = given.get("data-method")
        if self._open and self.method and tag in ("td", "th"):
            self.cells.setdefault(self.method, []).append([])

    def handle_endtag(self, tag):
        self._open = self._open and tag != "table"

    def handle_data(self, data):
        self.text += data
        if self._open and self.cells.get(self.method) and data.strip():
            self.cells[self.method][-1].append(data.strip())


def toy(
    folder, values, *, images=2, settings=("simple-fr",), definitions=("clean",), controls=("random", "edge", "oracle")
):
    """A run without a model: `values` is method -> (PAFL, SAFL) of every image of bucket 8 (A + Box1)."""
    request = {
        "settings": list(settings), "per_bucket": images, "limit": 0, "definitions": list(definitions),
        "region": "box", "target": "predicted", "seed": 0,
    }  # fmt: skip
    fixed = {"task": "textbox-1", "sampler": "disjoint", "glyphs": "0", "weights": {}, "unit": 128}
    run = Run(folder, request, fixed)
    for method in values:
        run.manifest["methods"][method] = {"key": "0" * 64, "own": False, "control": method in controls}
    run.keep()
    samples = [f"test-{i}" for i in range(images)]
    for method, pair in values.items():
        for setting in settings:
            constant = {
                "task": "textbox", "setting": setting, "model": "m", "method": method, "region": "box",
                "target": "predicted", "condition": "",
            }  # fmt: skip
            blocks = [
                results.block(
                    constant | {"metric": metric, "definition": definition},
                    samples,
                    ["8"] * images,
                    np.broadcast_to(np.array(value, float), images),
                    [""] * images,
                )
                for definition in definitions
                for metric, value in zip(("pafl", "safl"), pair, strict=True)
            ]
            results.write(run.part(Unit(setting, 0, 128), method), blocks)
    return run


CONTROLS = {"random": (0.03, 0.05), "edge": (0.5, 0.4), "oracle": (1.0, 0.0)}


def verdict(html):
    found = re.search(r'<p class="verdict">(.*?)</p>', html, re.S).group(1)
    return " ".join(re.sub(r"<.*?>", "", found).replace("&nbsp;", " ").split())


def test_the_scoreboard_prints_the_standings(tmp_path):
    outcome = bench(["gradient"], settings=["simple-fr", "complex-cr1"], per_bucket=2, out=tmp_path / "run")
    html = page(outcome.run)
    assert " that falls to " in verdict(html)
    cells = Rows(html).cells
    scores = Scores(outcome.run.rows(), "pafl", "clean")
    expected = standings(scores, ["random", "edge", "fake_cam", "oracle", "centre"])
    assert list(cells) == [standing.method for standing in expected]
    for standing in expected:
        rank, _, mean, simple, complex_, worst, *_ = cells[standing.method]
        assert rank == ([str(standing.rank)] if standing.rank else [])
        place = ["#1"] if standing.rank else []  # the only method that is ranked
        for printed, estimate, ranked in (
            (mean, standing.mean, []), (simple, standing.simple, place), (complex_, standing.complex, place),
        ):  # fmt: skip
            low, high = f"{100 * estimate.low:.1f}", f"{100 * estimate.high:.1f}"
            assert printed == [f"{100 * estimate.value:.1f}", *ranked, f"{low}–{high}"]
        setting, bucket = standing.worst_cell
        assert worst[0] == f"{100 * standing.worst.value:.1f}"
        assert worst[-1] == f"{setting}: {words.BUCKETS[bucket]}"


def test_only_simple_settings_have_no_column_for_complex(html):
    heads = re.findall(r'data-better="\w*">(.*?)</button>', html)
    assert "simple reasoning" in heads
    assert "complex reasoning" not in heads


def test_one_image_a_bucket_prints_no_interval(html):
    assert "no intervals" in html
    assert all(len(row[2]) == 1 for row in Rows(html).cells.values() if len(row) > 3)
    assert "interval" not in verdict(html)


def test_it_says_whose_maps_they_are(html, run):
    """A reader must see at once that models are robust, or of another background."""
    names = ", ".join(sorted(set(run.rows()["model"].to_pylist())))
    assert "simple_cnn(seed=0)" in names
    assert re.search(rf"Models:?\s*</\w+>\s*(<\w+>)?\s*{re.escape(names)}", html)


def test_names_of_methods_stay_text(html):
    parsed = Rows(html)
    assert NASTY in parsed.text
    assert NASTY not in html
    assert '<script>alert("x")' not in html.replace("&#34;", '"')
    assert r"\u003cscript\u003ealert" in html  # in the page's data it cannot end the element it stands in


def test_a_failure_is_shown_and_escaped(html):
    parsed = Rows(html)
    assert "broken failed" in parsed.text
    assert "ValueError: <b>broken</b> on purpose" in parsed.text
    assert "<b>broken</b> on purpose" not in html
    assert "no score: see the warnings" in parsed.text
    assert "not finished" not in html


def test_an_unfinished_run_says_how_far_it_is(tmp_path):
    run = toy(tmp_path, {"good": (0.9, 0.1), **CONTROLS}, settings=("simple-fr", "complex-cr1"))
    assert "not finished" not in page(run)
    run.part(Unit("complex-cr1", 0, 128), "good").unlink()
    html = page(run)
    text = " ".join(Rows(html).text.split())
    assert "7 of 8 units" in text
    assert "No method has a score in every bucket" in text


def test_the_verdict_names_the_leader_and_who_beats_no_control(tmp_path):
    run = toy(tmp_path, {"good": (0.9, 0.1), "poor": ([0.3, 0.75], 0.7), "noise": (0.03, 0.1), **CONTROLS})
    assert verdict(page(run)) == (
        "good leads: on average 90.0 % of its attribution lies on the objects that decide (95 % interval 90.0 to "
        "90.0), ahead of poor with 52.5 %. In its worst bucket (simple-fr, images that show A + Box1) that is "
        "90.0 %; poor is no better than the edges of the image, which no model had a part in, and noise is no better "
        "than random noise."
    )


def test_methods_that_cannot_be_told_apart_tie(tmp_path):
    run = toy(tmp_path, {"one": ([0.9, 0.7], 0), "other": ([0.7, 0.88], 0), **CONTROLS})
    html = page(run)
    assert verdict(html).startswith("one and other tie for the lead: on average 79.0 to 80.0 % of their")
    assert "every ranked method beats the controls random and edge" in verdict(html)
    assert [Rows(html).cells[method][0] for method in ("one", "other")] == [["1="], ["1="]]


def test_clean_comes_first_whatever_was_asked_first(tmp_path):
    html = page(toy(tmp_path, {"good": (0.9, 0.1), **CONTROLS}, definitions=("authors", "clean")))
    heads = [(head.name, head.definition) for head in book_of(opened(tmp_path)).heads]
    assert heads[0] == ("pafl", "clean")
    assert ("pafl", "authors") in heads
    assert "clean; below also authors" in html


def test_authors_alone(tmp_path):
    outcome = bench(
        ["gradient"], settings=["simple-fr"], per_bucket=1, definitions=["authors"], out=tmp_path / "run"
    )  # fmt: skip
    html = page(outcome.run)
    (gradient,) = (
        s for s in standings(Scores(outcome.run.rows(), "pafl", "authors")) if s.method == "gradient"
    )  # fmt: skip
    assert Rows(html).cells["gradient"][2] == [f"{100 * gradient.mean.value:.1f}"]
    assert "The same under definition" not in html
    assert "One image of each kind is few: this is a first look, no verdict." in html


def test_images_without_anything_that_decides(tmp_path):
    outcome = bench(["gradient"], settings=["simple-fr"], per_bucket=1, limit=3, out=tmp_path / "run")
    assert "nothing to rank" in verdict(page(outcome.run))


def test_every_bucket_and_method_has_a_picture(run):
    pictures = book_of(run).pictures
    assert len(pictures.samples) == len(pictures.photos) == len(pictures.outlines) == 12
    assert set(pictures.maps) == set(run.manifest["methods"]) - {"broken"}
    assert {maps.shape for maps in pictures.maps.values()} == {(12, 56, 56)}
    decides = [{one.role for one in some} for some in pictures.outlines]
    assert sum("primary" in roles for roles in decides) == 6


def test_colours_of_a_map_tell_its_sign():
    values = np.array([[1, 0], [-1, 0.25]], np.float16)
    picture = map_png(values)
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2]))).convert("RGB"))
    assert pixels[0, 0].tolist() == [178, 24, 43]
    assert pixels[0, 1].tolist() == [255, 255, 255]
    assert pixels[1, 0].tolist() == [33, 102, 172]
    assert pixels[1, 1, 0] > pixels[1, 1, 2]


def test_nothing_is_fetched(html):
    assert "Content-Security-Policy" in html
    own = re.sub(r"<script>.*?</script>", "", html, flags=re.S)  # the library's notices and namespaces name places
    assert "http://" not in own.replace("http-equiv", "")
    assert "https://" not in own
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", own)


def test_a_run_without_rows_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match=r"has no scores yet: run `saliometer bench --out .*` to its end"):
        write(toy(tmp_path, {}))
    assert not list(tmp_path.glob("report.html*"))


def test_where_everything_failed_the_error_names_it(tmp_path):
    run = toy(tmp_path, {"good": (0.9, 0.1)})
    part = Unit("simple-fr", 0, 128)
    run.part(part, "good").unlink()
    run.failure(part, "good").parent.mkdir(parents=True)
    run.failure(part, "good").write_text("Traceback\nValueError: no")
    with pytest.raises(ValueError, match="good failed"):
        write(run)


def test_it_is_written_whole_where_asked_or_into_the_run(run, tmp_path):
    assert write(run) == run.folder / "report.html"
    elsewhere = write(opened(run.folder), tmp_path / "deep" / "mine.html")
    assert elsewhere.read_bytes() == (run.folder / "report.html").read_bytes()
    assert [path.name for path in elsewhere.parent.iterdir()] == ["mine.html"]


def test_a_figure_is_found_by_being_there(tmp_path, monkeypatch, run):
    (tmp_path / "extra.py").write_text(
        "from saliometer.report.figures import Drawing, figure\n\n"
        "@figure('One more', of='bench', order=99)\ndef extra(view):\n    return Drawing('drawn by extra')\n"
    )
    (tmp_path / "_helper.py").write_text("raise RuntimeError('not a figure')\n")
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    monkeypatch.setattr(figures, "_known", dict(figures._known))
    monkeypatch.delitem(sys.modules, "saliometer.report.figures.extra", raising=False)
    assert [one.name for one in figures.figures("bench")][-1] == "extra"
    assert "drawn by extra" in page(run)


def test_every_file_in_the_folder_holds_figures_one_alone_of_its_name():
    there = {path.stem for path in Path(figures.__file__).parent.glob("[a-z]*.py")}
    known = [one for of in ("bench", "audit", "zhang", "smerf", "cose", "yona") for one in figures.figures(of)]
    homes = {one.name: one.draw.__module__.rpartition(".")[2] for one in known}
    assert set(homes.values()) == there
    alone = {name: home for name, home in homes.items() if list(homes.values()).count(home) == 1}
    assert alone == {home: home for home in alone.values()}


def test_words_agree_with_the_task():
    assert {name: setting.buckets for name, setting in words.SETTINGS.items()} == {
        name: len(cycle(name, "test")) for name in SETTINGS
    }
    for number, bucket in BUCKETS.items():
        shown = [bucket.letter, "Box1" * bucket.box1, "Box2" * bucket.box2]
        assert words.BUCKETS[str(number)] == (" + ".join(filter(None, shown)) or "nothing")
    assert {"pafl", "safl"} <= set(METRICS)


def test_it_imports_without_what_draws_it():
    code = (
        "import sys; sys.modules.update(jinja2=None, markupsafe=None, matplotlib=None); import saliometer.report.page"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_residuals_and_other_conditions_are_rows_but_no_definition_of_their_own(tmp_path):
    outcome = bench(
        ["smooth_grad(draws=2)", "input_x_gradient"],
        settings=["simple-fr"],
        per_bucket=1,
        seeds=2,
        out=tmp_path / "run",
    )
    assert {"residual", "pafl"} <= set(outcome.run.rows()["metric"].unique().to_pylist())
    assert {"", "seed(1)"} == set(outcome.run.rows()["condition"].unique().to_pylist())
    html = page(outcome.run)
    assert "Definition relative" not in html
    plain = bench(
        ["smooth_grad(draws=2)", "input_x_gradient"], settings=["simple-fr"], per_bucket=1, out=tmp_path / "plain"
    )
    assert Rows(html).cells == Rows(page(plain.run)).cells
