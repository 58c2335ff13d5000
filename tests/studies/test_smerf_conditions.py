"""SMERF's claims of all conditions on made-up rows: one table bears them out, a change turns them, a gap opens them."""

from functools import cache

import pyarrow.compute as pc
import pytest

from saliometer.engine.presets import SMERF
from saliometer.studies._smerf_claims import CLAIMS, held, judged_under
from saliometer.studies._smerf_conditions import WHOLE, Whole, judged
from saliometer.studies._smerf_paper import FEWER, with_references
from saliometer.studies._smerf_sweep import KS
from saliometer.tasks.textbox import SETTINGS
from smerf_claims_toys import swept, table

NEW = (1, 17, 18, 19, 21, 22, 23, 24, 27, 28, 29)
PARTS = {  # pafl simple, complex; piou simple, complex
    "black": (0.6, 0.5, 0.3, 0.2), "noise": (0.4, 0.1, 0.3, 0.2), "natural": (0.2, 0.03, 0.3, 0.2),
    "alexnet": (0.4, 0.2, 0.5, 0.3), "vgg16": (0.4, 0.2, 0.4, 0.1), "robust": (0.4, 0.2, 0.5, 0.4),
}  # fmt: skip


def bearing_out(part):
    def value(metric, name, setting, bucket):
        complex_ = setting.startswith("complex")
        numbers = {
            "pafl": PARTS[part][complex_], "piou": PARTS[part][2 + complex_], "safl": 0.7 if complex_ else 0.1,
            "siou": 0.05, "pmafl": 0.001 if complex_ else 0.004, "smafl": 0.004 if complex_ else 0.002,
        }  # fmt: skip
        if metric == "pmafl" and setting == "simple-nr" and bucket in (8, 11):
            return 0.001
        if metric == "pafl" and (setting, bucket) == ("complex-cr2", 9):
            return 0.01
        return numbers[metric]

    return value


@cache
def rows(part):
    return table(bearing_out(part))


def changed(part, metric, name, setting, number, bucket=None):
    """The same with another value for one metric of a method ('' for all) in settings that start so."""
    usual = bearing_out(part)

    def value(*cell):
        hit = cell[0] == metric and name in ("", cell[1]) and cell[2].startswith(setting) and bucket in (None, cell[3])
        return number if hit else usual(*cell)

    return {part: table(value)}


def by_k(name, k):
    return 0.2 + (k - 100) / 1000 if name == "IG" else 0.3


CARDS = {s: {"accuracy": 0.99, "accuracy_per_bucket": {"2": 1.0, "9": 0.95}} for s in SETTINGS}


def found(number, parts=None, cards=CARDS, sweep=by_k, without=(), others=None):
    given = {part: rows(part) for part in PARTS if part not in without} | (parts or {})
    missing = {part: f"train {part}" for part in without}
    models, ks = {"black": cards} | (others or {}), swept(sweep, KS) if sweep else None
    tables = [Whole(given, definition, models, missing, ks) for definition in held(given["black"])]
    [claim] = judged_under([claim for claim in [*CLAIMS, *WHOLE] if claim.number == number], tables)
    return claim


@pytest.mark.parametrize("number", NEW)
def test_claims_that_the_rows_bear_out(number):
    told = found(number)
    assert told["holds"] is True, told
    assert told["ours"]


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (17, ("black", "pafl", "G", "complex-cr2", 0.5, 9)),  # not enough alone: 13 of 15 are asked for
        (17, ("black", "pafl", "IG", "complex-cr2", 0.5, 9)),
    ],
)
def test_one_method_does_not_turn_claim_17(number, change):
    assert found(number, changed(*change))["holds"] is True


@pytest.mark.parametrize(
    ("number", "change", "said"),
    [
        (17, ("black", "pafl", "", "complex-cr2", 0.001, 12), "0 of 15 in bucket 9; 15 in 12"),
        (18, ("black", "safl", "", "simple", 0.9), "simple 30 of 30 pairs, complex 75 of 75 pairs"),
        (18, ("black", "safl", "", "", 0.0), "simple 0 of 30 pairs, complex 0 of 75 pairs"),
        (19, ("black", "smafl", "DT", "simple-fr", 0.006, 8), "+2.00 (DT simple-fr 8)"),
        (19, ("black", "pmafl", "", "simple-nr", 0.004), "-2.00 (SG simple-nr 8)"),
        (19, ("black", "smafl", "", "complex", 0.001), "+0.00 (SG complex-"),
        (21, ("robust", "piou", "SG", "simple", 0.35), "SG 0.30 to 0.35"),
        (21, ("robust", "piou", "D-SHAP", "complex", 0.6), "9 of 10; not D-SHAP 0.50 to 0.60"),
        (22, ("vgg16", "piou", "IG", "complex", 0.41), "vgg16: mean 8 of 9; not IG 0.40 to 0.41"),
        (22, ("alexnet", "piou", "IG", "simple", 0.1, 8), "lowest bucket 8 of 9; not IG 0.10 to 0.30"),
        (23, ("natural", "pafl", "LRP-eps", "simple", 0.46), "highest on simple LRP-eps 0.46"),
        (23, ("natural", "pafl", "IG", "complex", 0.06), "on complex IG 0.06"),
        (23, ("black", "pafl", "", "simple", 0.1), "below black 0 of 15"),
        (24, ("noise", "pafl", "G", "complex", 0.5), "lower on complex 14 of 15; not G 0.40 to 0.50"),
        (24, ("noise", "pafl", "", "simple", 0.11), "black 0.60, noise 0.11, natural 0.20"),
        (24, ("black", "pafl", "", "simple", 0.3), "below black 0 of 15"),
        (27, ("black", "siou", "DCN", "complex", 0.25), "most DCN complex 0.25"),
        (27, ("black", "piou", "DT", "simple", 0.01), "below PIOU 29 of 30; not DT simple 0.01 to 0.05"),
        (29, ("natural", "pafl", "SG", "complex", 0.7), "29 of 30; not SG complex 0.4"),
    ],
)
def test_one_number_turns_a_claim(number, change, said):
    told = found(number, changed(*change))
    assert told["holds"] is False, told
    assert said in told["ours"]


def test_half_of_the_buckets_is_no_majority():
    """Complex-FR has two with both kinds of object: where one of them fails, no method fails there."""
    told = found(18, changed("black", "safl", "", "complex-fr", 0.0, 11))
    assert "simple 0 of 30 pairs, complex 60 of 75 pairs" in told["ours"]


def test_claim_1_reads_the_cards():
    told = found(1)
    assert told["ours"].startswith("simple-fr 0.990, ")
    assert told["ours"].endswith("lowest simple-fr bucket 9 0.950")
    low = CARDS | {"complex-cr1.seed1": {"accuracy": 0.94, "accuracy_per_bucket": {"9": 0.95}}}
    assert found(1, cards=low)["holds"] is False
    assert found(1, cards=low)["ours"].endswith("; not complex-cr1.seed1")
    bucket = CARDS | {"simple-nr": {"accuracy": 0.99, "accuracy_per_bucket": {"2": 1.0, "8": 0.89}}}
    assert found(1, cards=bucket)["holds"] is False
    told = found(1, cards={})
    assert (told["holds"], told["ours"]) == (None, "")
    assert "no cards" in told["why"]


def test_claim_28_wants_both_a_change_and_another_order():
    assert "one IG map changes by 0.30 on average (0.20 to 0.50 in the mean); 2 orders" in found(28)["ours"]
    assert found(28, sweep=lambda name, k: 0.2 if name == "IG" else 0.3)["holds"] is False
    assert found(28, sweep=lambda name, k: k / 1000 + (0.1 if name == "IG" else 0))["holds"] is False  # one order
    assert found(28, sweep=lambda name, k: 0.3 + (name == "IG") * (0.05 if k > 200 else -0.04))["holds"] is False
    told = found(28, sweep=None)
    assert (told["holds"], told["ours"]) == (None, "")
    assert "other K" in told["why"]


@pytest.mark.parametrize(
    ("number", "part"),
    [(21, "robust"), (22, "vgg16"), (22, "alexnet"), (23, "natural"), (24, "noise"), (24, "natural"), (29, "natural")],
)
def test_a_condition_that_was_not_run_leaves_its_claims_open(number, part):
    told = found(number, without=(part,))
    assert (told["holds"], told["ours"]) == (None, "")
    assert told["why"] == f"{part} was not run: train {part}"


@pytest.mark.parametrize(
    ("number", "metric", "said"),
    [
        (17, "pafl", "the run lacks gradient"), (18, "safl", "the run has no SAFL of gradient"),
        (19, "smafl", "the run has no SMAFL of gradient"), (27, "siou", "the run has no SIOU of gradient"),
        (21, "piou", "the run has no PIOU of gradient"), (29, "pafl", "the run lacks gradient"),
    ],
)  # fmt: skip
def test_a_metric_that_is_missing_leaves_its_claims_open(number, metric, said):
    told = found(number, {"black": rows("black").filter(pc.field("metric") != metric)})
    assert told["holds"] is None
    assert said in told["why"]


def test_without_black_all_are_open():
    assert {claim["holds"] for claim in judged({}, {}, {}, None)} == {None}
    assert all(claim["why"] for claim in judged({}, {}, {}, None))


def test_models_that_missed_the_bar_are_told_with_the_claims_that_rest_on_them():
    robust = {s: {"accepted": s.startswith("simple")} for s in SETTINGS}
    told = "5 of 7 models of robust were not accepted, so their reasoning is not known"
    assert told in found(21, others={"robust": robust})["why"]
    assert "accepted" not in found(21, others={"robust": {s: {"accepted": True} for s in SETTINGS}})["why"]
    assert "accepted" not in found(22, others={"robust": robust})["why"]


def test_a_vgg16_that_is_not_the_paper_s_is_told():
    scratch = {s: {"accepted": True, "features": "trained from scratch, with batch norm"} for s in SETTINGS}
    told = "vgg16 is trained from scratch, with batch norm, the paper's has ImageNet's features, frozen"
    assert found(22, others={"vgg16": scratch})["why"] == told
    frozen = {s: {"accepted": True, "features": "of ImageNet, frozen: vgg16.pth"} for s in SETTINGS}
    assert found(22, others={"vgg16": frozen})["why"] == ""


def test_both_definitions_are_judged_and_clean_decides():
    usual = bearing_out("black")
    clean = table(lambda metric, *cell: 0.9 if metric == "siou" else usual(metric, *cell))
    authors = table(usual, ("authors",))
    told = found(27, {"black": type(clean).from_batches([*clean.to_batches(), *authors.to_batches()])})
    assert told["holds"] is False
    assert told["ours"].startswith("clean: fails, most ")
    assert "\nauthors: holds, most " in told["ours"]


def test_fewer_references_still_are_d_shap_and_it_is_said():
    fewer = table(bearing_out("black"), specs=with_references(50))
    told = found(3, {"black": fewer})
    assert told["holds"] is not None
    assert told["why"] == "D-SHAP is deep_shap(count=50), the paper's deep_shap(count=1000)"
    assert found(9, {"black": fewer})["why"] == ""  # is not about it
    assert found(3)["why"] == ""
    assert with_references(1000) == SMERF
    assert set(FEWER.values()) == {"deep_shap(count=100)", "deep_shap(count=50)", "deep_shap(count=10)"}


def test_there_are_29_claims_and_all_are_judged_in_their_order():
    told = judged({part: rows(part) for part in PARTS}, {"black": CARDS}, {}, swept(by_k, KS))
    assert [claim["id"] for claim in told] == list(range(1, 30))
    assert told[21 - 1] == found(21)
