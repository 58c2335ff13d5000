"""The 25 claims on rows made of the paper's tables: each verdict is the one its numbers give, and turns with them."""

import sys
from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from saliometer import results
from saliometer.engine.presets import ZHANG
from saliometer.studies import _quantus
from saliometer.studies._claims import MissingError
from saliometer.studies._zhang_claims import CLAIMS
from saliometer.studies._zhang_evidence import (
    FAKE,
    INFORMED,
    METHODS,
    METRICS,
    Evidence,
    clustered_spearman,
    mean_rho,
    weighted_spearman,
)
from zhang_toys import CONDITIONS, IMAGES, PIXELS, Change, block, evidence, papers, printed, row_values, rows_of


def judged(number: int, z: Evidence) -> dict:
    return next(claim for claim in CLAIMS if claim.number == number).judged(z)


def to(metric: str, method: str, value: float, target: str = "label", condition: str = "") -> Change:
    return lambda *cell: value if cell == (metric, method, target, condition) else None


def among(change: Callable[[str, str], float | None]) -> Change:
    """Of Table 1 alone."""
    return lambda metric, method, target, condition: (
        change(metric, method) if (target, condition) == ("label", "") else None
    )


def mixed(change: Callable[[str], float | None]) -> Change:
    """AI under MixUp alone."""
    return lambda metric, method, target, condition: (
        change(method) if (metric, condition) == ("AI", "mixup(weight=0.5)") else None
    )


def as_ai(method: str) -> float:
    return papers()["AI", method, "label", ""]


@cache
def as_printed() -> Evidence:
    return evidence(rows_of())


BORNE_OUT = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 16, 17, 18, 19, 20, 23]


@pytest.mark.parametrize("number", BORNE_OUT)
def test_claims_that_the_papers_tables_bear_out(number):
    found = judged(number, as_printed())
    assert found["holds"] is True, found
    assert found["ours"]
    assert not found["why"]


TURNING = [
    (1, to("AI", "Grad-CAM", 47.4)),
    (2, to("AD_bar", FAKE, 98.9)),
    (2, to("AD_bar", "RISE", 99.3)),
    (3, to("AG", "IBA", 1.5)),
    (3, lambda m, method, *rest: 3.1 if (m, method, *rest) == ("AG", FAKE, "label", "") else None),
    (4, to("D_bar", FAKE, 70.5)),  # last, but by 9.9
    (4, to("D_bar", "RISE", 61.0)),
    (5, to("I", "LIME", 60.0)),
    (5, to("I", "IG", 60.2)),
    (6, to("AI", "GuidedBP", 5.1)),
    (6, to("AD_bar", "IG", 10.1)),
    (6, to("AG", "Gradient", 1.1)),
    (7, to("AG", "RISE", 21.8)),
    (7, to("AG", "Grad-CAM++", 17.9)),
    (8, to("I", "LIME", 63.7)),
    (9, to("D_bar", "IG", 86.7)),  # behind GuidedBP and Grad-CAM
    (9, to("AI", "IG", 5.1)),
    (9, to("AD_bar", "IG", 10.1)),
    (9, to("AG", "IG", 1.1)),
    (9, among(lambda m, method: 99.0 if (m, method) == ("D_bar", "IG") else as_ai(method) if m == "D_bar" else None)),
    (9, lambda m, method, t, c: papers()["AI", method, t, c] if m == "D_bar" and (t, c) == ("label", "") else None),
    (10, to("AI", "IBA", 36.9, "predicted")),
    (10, to("AD_bar", "IBA", 82.4, "predicted")),
    (10, to("D_bar", "RISE", 80.5, "predicted")),
    (10, to("I", "LIME", 64.6, "predicted")),
    (10, to("AG", "Grad-CAM", 17.7, "predicted")),
    (11, to("I", "RISE", 0.6, "least")),
    (11, to("D_bar", FAKE, 99.4, "least")),
    (11, to("AG", "Gradient", 0.6, "least")),
    (11, to("AI", "Grad-CAM++", 74.9, "least")),
    (11, to("AD_bar", "RISE", 84.9, "least")),
    (11, to("AI", FAKE, 66.0, "least")),
    (13, to("Complexity", "IG", 10.3)),
    (13, to("EC", "Grad-CAM", 0.98 * PIXELS - 1)),
    (16, to("AI", "IG", 22.4, condition="mixup(weight=0.5)")),
    (16, mixed(lambda method: 22.4 if method == "IG" else as_ai(method) if "CAM" in method else None)),
    (16, to("AI", "Score-CAM", 82.0, condition="resize(side=32)")),
    (16, to("AI", "Score-CAM", 10.0, condition="resize(side=32)")),  # falls by more than gradients rise
    (17, to("I", FAKE, 60.2, condition="rotation(degrees=45)")),
    (17, to("D_bar", "IG", 88.3, condition="crop(area=0.8)")),
    (17, to("D_bar", "Grad-CAM", 86.7, condition="mixup(weight=0.5)")),  # excepted under crop alone
    (17, lambda m, method, t, c: 10.0 if m == "I" and c == "crop(area=0.8)" else None),
    (17, lambda m, method, t, c: 99.0 if m == "D_bar" and c == "crop(area=0.8)" else None),
    (18, to("AI", FAKE, 47.2, condition="rotation(degrees=45)")),
    (19, lambda m, method, t, c: 20.0 if m == "D_bar" and c == "crop(area=0.8)" else None),
    (19, lambda m, method, t, c: 10.0 if m == "AG" and t == "label" else None),
    (19, lambda m, method, t, c: papers()["AD_bar", method, t, c] / 10 if m == "AG" else None),  # the third
    (20, to("AG", FAKE, 90.5, condition="resize(side=32)")),  # as printed
    (20, to("AD_bar", FAKE, 2.0, condition="resize(side=32)")),  # as printed
    (20, to("AI", "RISE", 79.7, "predicted")),
    (23, lambda m, method, t, c: 99.0 if method == "IBA" and t == "label" and not c and m[0] == "A" else None),
    (23, lambda m, method, t, c: 0.0 if method == "Grad-CAM++" and t == "label" and not c else None),
    (23, among(lambda m, method: {"AI": 30.0, "Monotonicity": -0.1}.get(m) if method == "Grad-CAM++" else None)),
]


@pytest.mark.parametrize(("number", "change"), TURNING, ids=[f"{n}-{i}" for i, (n, _) in enumerate(TURNING)])
def test_another_number_turns_the_verdict(number, change):
    found = judged(number, evidence(rows_of(change)))
    assert found["holds"] is False, found


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (13, to("Complexity", "LIME", 5.0)),
        (17, to("D_bar", "Grad-CAM", 10.0, condition="crop(area=0.8)")),
        (8, to("I", FAKE, 10.0)),
        (11, to("AI", FAKE, 40.0, "least")),
    ],
)
def test_what_a_claim_excepts_does_not_turn_it(number, change):
    assert judged(number, evidence(rows_of(change)))["holds"] is True


def test_figures_are_the_papers_own():
    assert "Fake-CAM 47.3" in judged(1, as_printed())["ours"]
    assert "+8.8" in judged(4, as_printed())["ours"]  # 80.4 - 61.6 - 10
    ranks = judged(23, as_printed())["ours"]
    for words in ("Score-CAM 2.5", "Grad-CAM 2.83", "Grad-CAM++ 3.33", "IBA 4.67", "Fake-CAM 4.83"):
        assert words in ranks
    spread = judged(19, as_printed())["ours"]
    assert "D_bar 0.05" in spread
    assert "AG 0.6" in spread
    assert judged(17, as_printed())["ours"].startswith("D-bar of Grad-CAM under crop, excepted: -8.0")
    assert "70 triples" in judged(20, as_printed())["ours"]  # as many as Tables 2 and 4 hold, Table 1 among them


def test_the_claim_of_first_three_places_wants_its_interval():
    rng = np.random.default_rng(0)
    noisy = []
    for (metric, method, *where), mean in papers().items():
        if where == ["label", ""]:
            shift = rng.normal(0, 1, IMAGES) * (method != FAKE)
            noisy.append(block(METRICS[metric][0], method, row_values(metric, mean) + shift - shift.mean()))
    found = judged(23, evidence(noisy))
    assert found["holds"] is False  # the means are the paper's, but four images do not make sure of them
    assert "interval holds 0" in found["why"]


def test_claim_10_is_open_without_labels():
    found = judged(10, evidence(rows_of(keep=lambda cell: cell[2] != "predicted"), labelled=False))
    assert found["holds"] is None
    assert "labels" in found["why"]


def no_exception_and_a_reason(z: Evidence) -> dict[int, dict]:
    found = {claim.number: claim.judged(z) for claim in CLAIMS if claim.number not in (21, 22)}
    for one in found.values():
        assert set(one) == {"id", "text", "paper", "ours", "holds", "why", "figure"}
        assert one["holds"] is not None or one["why"]
    return found


@cache
def complete() -> pa.Table:
    """The paper's rows with those it does not print: signed maps, confidence, extent."""
    rng = np.random.default_rng(1)
    more = [block(name, m, rng.random(IMAGES)) for name in ("probability", "extent", "extent.largest") for m in METHODS]
    signed = block("average_drop", "IG", [0.02] * IMAGES, stage="signed_joint_minmax")
    return pa.concat_tables([printed(), *more, signed]).unify_dictionaries().combine_chunks()


def without(**words: str) -> Evidence:
    ((name, word),) = words.items()
    return evidence([complete().filter(pc.field(name) != word)])


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_method_leaves_claims_about_it_open(method):
    found = no_exception_and_a_reason(without(method=ZHANG[method]))
    about_all = {1, 2, 4, 7, 9, 12, 17, 19, 23, 25}
    about_one = {
        FAKE: {3, 5, 11, 15, 18}, "LIME": {5, 8, 10, 11, 24}, "IG": {5, 6, 13, 14, 16, 24}, "RISE": {3, 8, 10, 13, 24},
    }  # fmt: skip
    open_ = {number for number, one in found.items() if one["holds"] is None}
    assert open_ >= about_all | about_one.get(method, set())
    assert all(method in found[number]["why"] for number in open_ - {24})  # which four images leave open anyway
    assert found[20]["holds"] is True  # the others' triples


@pytest.mark.parametrize("metric", [*METRICS, "probability", "extent", "extent.largest"])
def test_a_missing_metric_leaves_claims_about_it_open(metric):
    about = {
        "AI": {1, 6, 9, 16, 18, 19, 20, 25}, "AD_bar": {2, 6, 9, 12, 14, 19, 20, 23, 25}, "AG": {3, 6, 7, 12, 19, 20},
        "I": {5, 8, 12, 17, 19, 25}, "D_bar": {4, 9, 12, 17, 19}, "Monotonicity": {23}, "MS": {15, 24}, "AS": {15, 24},
        "Sparseness": {24}, "Complexity": {13, 24}, "EC": {13}, "probability": {12}, "extent": {25},
        "extent.largest": {25},
    }  # fmt: skip
    name = METRICS[metric][0] if metric in METRICS else metric
    found = no_exception_and_a_reason(without(metric=name))
    for number in about[metric]:
        assert found[number]["holds"] is None
        assert name in found[number]["why"] or number == 20


@pytest.mark.parametrize("transform", CONDITIONS)
def test_a_missing_transform_leaves_claims_about_it_open(transform):
    found = no_exception_and_a_reason(without(condition=CONDITIONS[transform]))
    numbers = {17, 19} | ({16} if transform in ("mixup", "resize") else {18} if transform == "rotation" else set())
    for number in numbers:
        assert found[number]["holds"] is None
        assert transform in found[number]["why"]


def test_missing_targets_leave_their_claims_open():
    found = no_exception_and_a_reason(without(target="least"))
    assert found[11]["holds"] is None
    assert "least" in found[11]["why"]


def test_nothing_at_all_leaves_everything_open():
    found = no_exception_and_a_reason(Evidence(results.SCHEMA.empty_table(), PIXELS, True))
    assert all(one["holds"] is None for one in found.values())


def test_images_that_only_the_transformed_set_holds_leave_it_open():
    stray = block("average_increase", FAKE, [0.9] * (IMAGES + 1), condition="rotation(degrees=45)")
    found = judged(18, evidence([*rows_of(keep=lambda cell: cell[3] != "rotation(degrees=45)"), stray]))
    assert found["holds"] is None
    assert "image-4" in found["why"]


def test_values_that_are_all_undefined_leave_it_open():
    undefined = [block(name, FAKE, [np.nan] * IMAGES) for name in ("max_sensitivity", "avg_sensitivity")]
    found = judged(15, evidence(undefined))
    assert found["holds"] is None
    assert "undefined" in found["why"]
    nothing = to("AI", FAKE, np.nan)
    assert judged(1, evidence(rows_of(nothing)))["holds"] is None


# Claims that the paper prints no numbers for


def confident(slopes: dict[str, float], images: int = 40) -> Evidence:
    """Scores that rise (1) or fall (-1) with p on all images, or on a part of them; between are weaker correlations."""
    p = np.linspace(0.05, 0.95, images)
    odd = np.random.default_rng(0).permutation(images) / images

    def made(slope: float) -> np.ndarray:
        return slope * p + (1 - abs(slope)) * odd

    names = {"I": "insertion", "D": "deletion", "AG": "average_gain", "AD": "average_drop"}
    blocks = [block("probability", m, p) for m in METHODS]
    return evidence(blocks + [block(names[key], m, made(slope)) for key, slope in slopes.items() for m in METHODS])


def test_claim_12_follows_the_signs_of_known_correlations():
    right = {"I": 1.0, "D": 0.5, "AG": 1.0, "AD": -1.0}
    assert judged(12, confident(right))["holds"] is True
    assert "I Fake-CAM 1" in judged(12, confident(right))["ours"]
    for wrong in ({"I": -1.0}, {"D": -0.5}, {"D": 1.0, "I": 0.5}, {"AG": -1.0}, {"AD": 1.0}):
        assert judged(12, confident(right | wrong))["holds"] is False, wrong


def test_claim_12_is_open_where_scores_do_not_vary_or_images_are_few():
    flat = judged(12, confident({"I": 1.0, "D": 0.5, "AG": 0.0, "AD": -1.0}))
    assert flat["holds"] is not None  # slope 0 is noise, which varies
    still = confident({"I": 1.0, "D": 0.5, "AD": -1.0})
    blocks = [still.rows] + [block("average_gain", m, [0.0] * 40) for m in METHODS]
    found = judged(12, evidence(blocks))
    assert found["holds"] is None
    assert "undefined: with AG" in found["why"]
    two = judged(12, confident({"I": 1.0, "D": 0.5, "AG": 1.0, "AD": -1.0}, images=2))
    assert two["holds"] is None
    assert "too few" in two["why"]


def sized(sign: float, noise: float = 0.0, images: int = 12) -> Evidence:
    """Fidelity that rises with the marked area by `sign`, the same area in one piece."""
    rng = np.random.default_rng(0)
    blocks = []
    for place, method in enumerate(METHODS):
        area = 0.05 * place + 0.01 * np.arange(images) + 0.001
        shift = noise * rng.normal(size=(4, images))
        blocks += [block("extent", method, area), block("extent.largest", method, area / 2)]
        names = ("average_increase", "average_gain", "insertion", "average_drop")
        for name, row in zip(names, shift, strict=True):
            blocks.append(block(name, method, (-sign if name == "average_drop" else sign) * area + row))
    return evidence(blocks)


def test_claim_25_follows_the_sign_of_area_and_score():
    found = judged(25, sized(1))
    assert found["holds"] is True
    assert "within images 1.00, within methods 1.00, largest piece 1.00, with Fake-CAM 1.00" in found["ours"]
    assert judged(25, sized(-1))["holds"] is False
    unclear = judged(25, sized(0.0, noise=1.0))
    assert unclear["holds"] is False


def test_claim_25_is_about_the_informed_methods():
    """A Fake-CAM that marks most and scores worst is told beside, and does not count."""
    z, names = sized(1), ("average_increase", "average_gain", "insertion", "extent.largest")
    others = z.rows.filter(pc.field("method") != ZHANG[FAKE])
    fake = [block(name, FAKE, [-1.0] * 12) for name in names]
    fake += [block("average_drop", FAKE, [1.0] * 12), block("extent", FAKE, [1.0] * 12)]
    found = judged(25, evidence([others, *fake]))
    assert found["holds"] is True
    assert found["ours"].count("with area: +1 [1, 1]") == 4
    assert found["ours"].count("with Fake-CAM 0.46") == 4


def test_claim_25_wants_the_whole_interval_above_0():
    area, score = np.arange(12.0), np.array([4, 0, 10, 2, 9, 5, 11, 1, 3, 8, 7, 6.0])
    names = {"extent": area, "extent.largest": area, "average_increase": score, "average_gain": score}
    names |= {"insertion": score, "average_drop": -score}
    found = judged(25, evidence([block(name, m, values) for name, values in names.items() for m in METHODS]))
    assert "AI with area: +0.2" in found["ours"]
    assert found["holds"] is False
    assert "the interval holds 0 for AD_bar with area, AI with area" in found["why"]


def test_claim_14_reads_the_signed_rows():
    plain = block("average_drop", "IG", [0.95] * IMAGES)  # AD-bar 5
    for drop, holds in ((0.02, True), (0.56, False), (0.54, True)):
        signed = block("average_drop", "IG", [drop] * IMAGES, stage="signed_joint_minmax(fill=black)")
        found = judged(14, evidence([plain, signed]))
        assert found["holds"] is holds
        assert f"IG 5.0 to {100 - 100 * drop:.1f}; methods lie up to 0.0 apart" in found["ours"]
    other = block("average_drop", FAKE, [0.01] * IMAGES)
    assert "methods lie up to 94.0 apart" in judged(14, evidence([plain, other, signed]))["ours"]
    assert judged(14, evidence([plain]))["holds"] is None
    assert judged(6, evidence([signed]))["holds"] is None  # signed rows stand for no others


def test_claim_15_wants_exactly_0():
    def fake(worst: float) -> Evidence:
        shaken = {"max_sensitivity": [0.0, 0.0, worst, np.nan], "avg_sensitivity": [0.0] * 4}
        return evidence([block(name, FAKE, values) for name, values in shaken.items()])

    assert judged(15, fake(0.0))["holds"] is True
    assert judged(15, fake(1e-12))["holds"] is False
    assert judged(15, as_printed())["holds"] is False  # 0.96


FOUR = ("max_sensitivity", "avg_sensitivity", "sparseness", "complexity")


def columns_of(apart: dict[str, bool], images: int = 30) -> Evidence:
    """Metrics that order all methods alike on every image, or at random."""
    rng = np.random.default_rng(0)
    blocks = []
    for name, separated in apart.items():
        order = np.tile(np.arange(9.0), (images, 1))
        order = order if separated else rng.permuted(order, axis=1)
        blocks += [block(name, m, order[:, place]) for place, m in enumerate(INFORMED)]
    return evidence(blocks)


def test_claim_24_counts_pairs_that_are_apart():
    found = judged(24, columns_of(dict.fromkeys(FOUR, False)))
    assert found["holds"] is True
    none = [f"{key} 0 of 36 pairs" for key in ("MS", "AS", "Sparseness", "Complexity")]
    assert found["ours"] == "separated: " + ", ".join(none)
    for one in FOUR:
        found = judged(24, columns_of(dict.fromkeys(FOUR, False) | {one: True}))
        assert found["holds"] is False
        assert "36 of 36 pairs" in found["ours"]


@pytest.mark.parametrize(("images", "holds"), [(1, None), (12, None), (13, False)])
def test_claim_24_is_open_on_few_images(images, holds):
    """Whoever wins on all of n images has P > 0.025^(1/n): over 0.75 from 13 on."""
    found = judged(24, columns_of(dict.fromkeys(FOUR, True), images))
    assert found["holds"] is holds
    assert found["why"].startswith(f"{images} images have max_sensitivity") == (holds is None)


def test_claim_24_counts_ties_half_and_half_of_the_pairs_as_too_many():
    same = evidence([block(name, m, [1.0] * 20) for name in FOUR for m in INFORMED])
    assert judged(24, same)["holds"] is True
    # 4 alike and 5 alike, the groups apart: 20 of 36; 3 and 6: 18, which are not fewer than half
    for first, apart, holds in ((4, 20, False), (3, 18, False), (2, 14, True), (1, 8, True)):
        blocks = [block(name, m, [float(place < first)] * 20) for name in FOUR for place, m in enumerate(INFORMED)]
        found = judged(24, evidence(blocks))
        assert f"MS {apart} of 36" in found["ours"]
        assert found["holds"] is holds


@pytest.mark.parametrize(("won", "holds"), [(320, False), (280, True)])
def test_claim_24_wants_the_whole_interval_beyond_three_quarters(won, holds):
    """Of 400 images a group of four methods wins on 80 %, from 76 to 84, or on 70 %, from 65.5 to 74.5."""
    better = np.repeat([1.0, -1.0], [won, 400 - won])
    blocks = [block(name, m, better * (place < 4)) for name in FOUR for place, m in enumerate(INFORMED)]
    found = judged(24, evidence(blocks))
    assert f"MS {0 if holds else 20} of 36 pairs" in found["ours"]
    assert found["holds"] is holds


@pytest.mark.parametrize("number", [21, 22])
def test_claims_about_quantus_are_open_without_it(number, monkeypatch):
    monkeypatch.setitem(sys.modules, "quantus", None)
    found = judged(number, as_printed())
    assert found["holds"] is None
    assert "Quantus is not installed" in found["why"]
    with pytest.raises(MissingError):
        _quantus.monotonicity()


@pytest.mark.parametrize("number", [21, 22])
def test_claims_about_quantus_hold_with_it(number):
    pytest.importorskip("quantus")
    assert judged(number, as_printed())["holds"] is True


# Correlations


def test_correlations_agree_with_scipy():
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, (2, 30)).astype(float)  # with ties
    assert weighted_spearman(a, b)[0] == pytest.approx(spearmanr(a, b).statistic)
    x, y = rng.normal(size=(2, 10, 4))
    assert clustered_spearman(x, y)[0] == pytest.approx(spearmanr(x.ravel(), y.ravel()).statistic)
    assert mean_rho(x, y) == pytest.approx(np.mean([spearmanr(*rows).statistic for rows in zip(x, y, strict=True)]))
    a[3], x[2, 1] = np.nan, np.nan
    known = ~np.isnan(a)
    assert weighted_spearman(a, b)[0] == pytest.approx(spearmanr(a[known], b[known]).statistic)
    known = ~np.isnan(x)
    assert clustered_spearman(x, y)[0] == pytest.approx(spearmanr(x[known], y[known]).statistic)


def test_correlations_without_spread_are_undefined():
    assert np.isnan(weighted_spearman(np.arange(5.0), np.ones(5))[0])
    assert np.isnan(clustered_spearman(np.arange(6.0).reshape(3, 2), np.ones((3, 2)))[0])


def test_every_claim_is_there_once_in_order():
    assert [claim.number for claim in CLAIMS] == list(range(1, 26))
    assert len({claim.text for claim in CLAIMS}) == 25
