"""The audit's page: its numbers are those of the rows, names stay text, pictures and failures are on it."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import saliometer
from audit_toys import failing, network, noise
from run_toys import toy_audit
from saliometer.engine.run import Run, opened
from saliometer.report.page import book_of, page, write

NASTY = '<script>alert("x")</script>'
CHOSEN = ["average_drop", "insertion(steps=4)", "sparseness", "max_sensitivity(draws=2)", "deletion(steps=4)"]


def nasty(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    return images


def broken(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    raise ValueError("<b>broken</b> on purpose")


nasty.__name__ = NASTY


class Text(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.words, self.tags, self.sources = "", [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for key, value in attributes if key in ("src", "href")]

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    with failing("deletion"):
        return saliometer.audit(
            network(), noise(), torch.tensor([0, 1, 2, 0, 1]), methods=["gradient", nasty, broken], metrics=CHOSEN,
            name="<i>pets</i>", out=tmp_path_factory.mktemp("page") / "run",
        )  # fmt: skip


@pytest.fixture(scope="module")
def html(judged):
    return page(book_of(judged.run))


def test_names_stay_text(html):
    assert NASTY not in html
    assert "<b>broken</b> on purpose" not in html
    assert "<i>pets</i>" not in html
    text = Text(html).words
    assert NASTY in text
    assert "<b>broken</b> on purpose" in text


def test_its_numbers_are_those_of_the_rows(judged, html):
    text = " ".join(Text(html).words.split())
    for method in ("gradient", NASTY, "random"):
        for metric in ("average_drop", "insertion", "sparseness"):
            values = [
                row["value"] for row in judged.rows.to_pylist() if (row["method"], row["metric"]) == (method, metric)
            ]
            assert f"{100 * np.mean(values):.1f}" in text
    for sentence in judged.verdict():
        assert sentence in text


def test_it_needs_nothing_from_elsewhere(html):
    assert all(source.startswith(("data:", "#")) for source in Text(html).sources)
    assert not re.search(r"@import|url\(http", html)


def test_every_image_is_there_with_every_methods_map(judged):
    book = book_of(judged.run)
    pictures = book.pictures
    assert len(pictures.samples) == len(pictures.captions) == len(pictures.photos) == 5
    assert set(pictures.maps) == {*judged.methods, *judged.controls}
    for method, maps in pictures.maps.items():
        assert maps.shape[0] == 5
        assert max(maps.shape[1:]) <= 56
        if method != "all_ones":  # the same everywhere: nothing to show
            assert (abs(maps.astype(int)).reshape(5, -1).max(1) == 127).all()  # scaled by its own largest value
    assert len({maps.tobytes() for maps in pictures.maps.values()}) == len(pictures.maps)


def test_values_of_single_images_are_those_of_the_rows(judged):
    book = book_of(judged.run)
    names, samples = [m.name for m in book.methods], [s.id for s in book.samples]
    for head in book.heads:
        for row in judged.rows.to_pylist():
            if (row["metric"], row["definition"]) == (head.metric, head.definition) and row["method"] in names:
                kept = head.values[names.index(row["method"]), samples.index(row["sample"])]
                np.testing.assert_allclose(kept, row["value"], rtol=1e-6)


def test_what_failed_is_on_the_page_with_its_traceback(html):
    text = Text(html).words
    assert "Traceback" in text
    assert "deletion broke" in text


def test_it_is_made_from_the_folder_alone_and_written_whole(judged, html, tmp_path):
    again = opened(judged.run.folder)
    assert page(book_of(again)) == html
    assert write(again) == judged.run.folder / "report.html"
    assert (judged.run.folder / "report.html").read_text(encoding="utf-8") == html
    with pytest.raises(ValueError, match="is a folder: the report wants a file"):
        write(again, tmp_path)


def test_a_run_without_rows_says_so(judged, tmp_path):
    bare = Run(tmp_path / "bare", judged.run.manifest["request"], judged.run.manifest["fixed"])
    with pytest.raises(ValueError, match="has no scores yet"):
        book_of(bare)


def test_an_unfinished_audit_says_so(tmp_path):
    values = {"gradient": [0.1] * 40, "random": [0.2] * 40}
    run = toy_audit(tmp_path / "run", {"average_drop": values})  # 40 images are two units, one is there
    assert "not finished: 2 of 4 units" in book_of(run).banner
    whole = toy_audit(tmp_path / "whole", {"average_drop": {"gradient": [0.1] * 3, "random": [0.2] * 3}})
    assert book_of(whole).banner == ""


def test_what_broke_is_told_apart_from_what_failed(judged):
    names = {one.method for one in book_of(judged.run).failed}
    assert "broken" in names
    assert "gradient, deletion" in names
    assert "gradient" not in names


def test_every_word_of_the_page_is_explained(judged):
    terms = {term.name for term in book_of(judged.run).terms}
    assert {"average_drop", "Symbols", "Interval", "Rank", "Control random", "Control edge"} <= terms


def test_time_and_passes_are_told_by_metric_and_by_method(judged):
    costs = {cost.what: cost for cost in book_of(judged.run).costs}
    assert {"maps", "insertion", "gradient", "random"} <= set(costs)
    assert costs["maps"].passes > 0
    by = [sum(cost["passes"] for cost in judged.costs(kind).values()) for kind in ("metric", "method")]
    assert by[0] == pytest.approx(by[1])


def test_classes_are_called_by_their_names_where_folders_say_so(tmp_path):
    from PIL import Image

    for place, name in enumerate(("cat", "dog", "owl")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        Image.new("RGB", (16, 16), (200, 80 * place, 90)).save(tmp_path / "photos" / name / "a.png")
    given = {"methods": ["gradient"], "metrics": ["sparseness"], "size": 8, "mean": 0.0, "std": 1.0}
    found = saliometer.audit(network(), tmp_path / "photos", target="label", out=tmp_path / "run", **given)
    assert book_of(found.run).pictures.captions == tuple(f"explains {one}" for one in ("cat (0)", "dog (1)", "owl (2)"))
    tensors = saliometer.audit(network(), noise(), out=tmp_path / "tensors", methods="gradient", metrics="sparseness")
    assert all(re.fullmatch(r"explains class \d", one) for one in book_of(tensors.run).pictures.captions)
