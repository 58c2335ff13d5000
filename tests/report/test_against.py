"""One run against another: differences by hand, paired where the images are the same, and what differs in words."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from run_toys import toy_audit, toy_bench
from saliometer.report.against import OPEN, compared, verdict
from saliometer.report.page import book_of, page
from saliometer.summary import Estimate, Scores

RNG = np.random.default_rng(0)
WILD = RNG.uniform(0.1, 0.8, 12).tolist()  # images that differ much more than the runs do
ABOVE = [value + 0.1 for value in WILD]
NOISY = [value + step for value, step in zip(WILD, RNG.normal(0.02, 0.05, 12), strict=True)]


def against(one, other):
    return compared(one, other, book_of(one), book_of(other))


def pair_of(found, metric, method):
    contrast = next(one for one in found.rows if one.head.metric == metric)
    return contrast, next(pair for pair in contrast.pairs if pair.method == method)


def test_the_same_images_are_paired(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": ABOVE}), toy_bench(tmp_path / "other", {"a": WILD}, weights="1")
    found = against(one, other)
    contrast, pair = pair_of(found, "pafl", "a")
    assert contrast.paired
    assert contrast.images == (12, 12)
    assert (pair.gap.value, pair.gap.low, pair.gap.high) == pytest.approx((0.1, 0.1, 0.1), abs=1e-6)
    assert pair.this.value == pytest.approx(np.mean(ABOVE))
    assert pair.other.value == pytest.approx(np.mean(WILD))
    assert pair.verdict == "better"
    assert pair_of(found, "safl", "a")[1].verdict == "better"  # 0.1 less, and lower is better
    assert pair_of(against(other, one), "pafl", "a")[1].verdict == "worse"
    assert found.name == "other"


def test_a_paired_difference_is_that_of_two_methods_in_one_run(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": NOISY}), toy_bench(tmp_path / "other", {"a": WILD})
    both = toy_bench(tmp_path / "both", {"new": NOISY, "old": WILD})
    expected = Scores(both.rows(), "pafl", "clean").difference("new", "old")
    _, pair = pair_of(against(one, other), "pafl", "a")
    assert vars(pair.gap) == pytest.approx(vars(expected), abs=1e-6)


def test_other_images_are_resampled_each_by_itself(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": ABOVE}), toy_bench(tmp_path / "other", {"a": WILD}, seed=1)
    contrast, pair = pair_of(against(one, other), "pafl", "a")
    assert not contrast.paired
    assert pair.gap.value == pytest.approx(0.1)
    error = np.sqrt((np.var(ABOVE) + np.var(WILD)) / 12)  # of the difference of two independent means
    assert (pair.gap.high - pair.gap.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.04)
    assert pair.verdict == OPEN


def test_fewer_of_the_same_images_are_not_paired(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": ABOVE}), toy_bench(tmp_path / "other", {"a": WILD[:6]})
    contrast, pair = pair_of(against(one, other), "pafl", "a")
    assert (contrast.paired, contrast.images) == (False, (12, 6))
    assert pair.gap.value == pytest.approx(np.mean(ABOVE) - np.mean(WILD[:6]))


def test_audits_pair_by_the_content_of_their_images(tmp_path: Path) -> None:
    one = toy_audit(tmp_path / "one", {"deletion": {"a": ABOVE, "random": WILD}})
    other = toy_audit(tmp_path / "other", {"deletion": {"a": WILD, "random": WILD}}, model="other_net")
    found = against(one, other)
    contrast, pair = pair_of(found, "deletion", "a")
    assert contrast.paired
    assert (pair.gap.low, pair.gap.value, pair.gap.high) == pytest.approx((0.1, 0.1, 0.1))
    assert pair.verdict == "worse"  # of deletion, lower is better
    assert pair_of(found, "deletion", "random")[1].verdict == OPEN
    assert pair_of(found, "deletion", "random")[1].role == "control"
    elsewhere = toy_audit(tmp_path / "elsewhere", {"deletion": {"a": WILD, "random": WILD}}, images="1")
    contrast, pair = pair_of(against(one, elsewhere), "deletion", "a")
    assert not contrast.paired
    assert pair.gap.high - pair.gap.low > 0.1  # as many images, but drawn apart


def test_one_image_leaves_the_difference_open(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": [0.9]}), toy_bench(tmp_path / "other", {"a": [0.1]})
    _, pair = pair_of(against(one, other), "pafl", "a")
    assert pair.gap.value == pytest.approx(0.8)
    assert np.isnan(pair.gap.low)
    assert pair.verdict == OPEN
    told = json.loads(json.dumps(against(one, other).data(), allow_nan=False))
    assert told["heads"][0]["rows"][0]["gap"] == [pytest.approx(0.8), None, None]


@pytest.mark.parametrize(
    ("gap", "better", "said"),
    [
        ((0.2, 0.1, 0.3), "higher", "better"), ((0.2, 0.1, 0.3), "lower", "worse"), ((0.2, 0.1, 0.3), "", "higher"),
        ((-0.2, -0.3, -0.1), "lower", "better"), ((0.1, -0.1, 0.3), "higher", OPEN), ((0.0, 0.0, 0.0), "higher", OPEN),
        ((-0.2, -0.3, -0.1), "", "lower"),
    ],
)  # fmt: skip
def test_the_verdict_follows_the_interval_and_the_direction(gap, better, said) -> None:
    assert verdict(Estimate(*gap), better) == said


def test_what_differs_is_said_in_words(tmp_path: Path) -> None:
    one = toy_bench(tmp_path / "one", {"a": WILD, "b": WILD})
    other = toy_bench(
        tmp_path / "other",
        {"a": WILD, "c": WILD},
        keys={"a": "1" * 64},
        seed=3,
        weights="1",
        definitions=["clean", "authors"],
    )
    other.manifest["versions"]["torch"] = "9.9"
    said = against(one, other).differs
    assert "Seed: 0 here, 3 there." in said
    assert "Definitions: clean here, clean + authors there." in said
    assert "The weights are not the same." in said
    assert f"Torch: {one.manifest['versions']['torch']} here, 9.9 there." in said
    assert "Other code or parameters under the same name: a." in said
    assert "Only here: b." in said
    assert "Only there: c." in said
    assert not any("per bucket" in line.lower() for line in said)
    assert against(one, one).differs == ["The two runs asked for the same, with the same versions of everything."]


def test_ranks_of_both_runs_stand_beside(tmp_path: Path) -> None:
    one = toy_bench(tmp_path / "one", {"a": [0.9, 0.8, 0.9], "b": [0.1, 0.2, 0.1]})
    other = toy_bench(tmp_path / "other", {"a": [0.1, 0.2, 0.1], "b": [0.9, 0.8, 0.9]})
    head = next(head for head in against(one, other).data()["heads"] if head["metric"] == "pafl")
    assert {row["method"]: row["ranks"] for row in head["rows"]} == {"a": ["1", "2"], "b": ["2", "1"]}
    assert (head["paired"], head["better"], head["share"]) == (True, "higher", True)


def test_runs_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": WILD}), toy_bench(tmp_path / "other", {"b": WILD})
    with pytest.raises(ValueError, match="share no method under a metric of the same definition"):
        against(one, other)
    with pytest.raises(ValueError, match=r"is of kind bench and .* of kind audit"):
        against(one, toy_audit(tmp_path / "audit", {"deletion": {"a": WILD, "random": WILD}}))


def test_two_folders_of_one_name_are_told_apart_by_their_path(tmp_path: Path) -> None:
    one, other = (toy_bench(tmp_path / place / "run", {"a": WILD}) for place in ("one", "other"))
    assert against(one, other).name == str(tmp_path / "other" / "run")


def test_the_page_gets_a_section_and_its_data_and_names_stay_text(tmp_path: Path) -> None:
    one, other = toy_bench(tmp_path / "one", {"a": WILD}), toy_bench(tmp_path / "<b>other", {"a": ABOVE})
    book = book_of(one)
    html = page(replace(book, compared=compared(one, other, book, book_of(other))))
    assert '<section id="against">' in html
    assert "<h2>Against &lt;b&gt;other</h2>" in html
    assert "<b>other" not in html
    assert "function startAgainst()" in html
    assert '<section id="against">' not in page(book)
