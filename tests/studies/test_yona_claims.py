"""The 15 claims of the causal study over made-up rows: each holds, fails and stays open for its own reason."""

from collections.abc import Callable

import numpy as np
import pytest

from saliometer.report.figures import figures
from saliometer.studies._yona_claims import CLAIMS
from saliometer.studies._yona_evidence import over_seeds
from saliometer.studies._yona_headline import checked, reproduced, sentences
from yona_toys import METHODS, Key, evidence

Change = Callable[[Key, float], float | None]


def judged(number: int, change: Change = lambda key, value: value, missed: dict[str, str] | None = None):
    (claim,) = (one for one in CLAIMS if one.number == number)
    return claim.judged(evidence(change, missed or {}))


def where(wanted: dict[str, str], moved: Callable[[float], float | None]) -> Change:
    """Change the numbers whose key has all of `wanted`: task, model, method, metric, definition, region, condition."""
    names = ("task", "model", "method", "metric", "definition", "region", "condition")

    def changed(key: Key, value: float) -> float | None:
        told = dict(zip(names, key, strict=True))
        fits = all(
            told[name].startswith(part.removesuffix("*")) if part.endswith("*") else told[name] == part
            for name, part in wanted.items()
        )
        return moved(value) if fits else value

    return changed


def test_there_are_fifteen_and_all_hold_on_rows_made_so():
    e = evidence()
    assert [claim.number for claim in CLAIMS] == list(range(1, 16))
    assert [claim.judged(e)["holds"] for claim in CLAIMS] == [True] * 15


GBP, VBP, IXG = "guided_backprop", "gradient", "input_x_gradient"
FAILING = {
    1: where({"task": "t", "method": GBP, "metric": "B", "definition": "spearman_abs", "region": ""}, lambda v: 0.9),
    2: where({"task": "half", "method": VBP, "metric": "E.low"}, lambda v: -0.01),
    3: where({"task": "half", "method": GBP, "metric": "contrast", "condition": "against(t)"}, lambda v: -0.1),
    4: where({"task": "t2", "method": GBP, "metric": "E.low"}, lambda v: 0.0),
    5: where({"task": "t2", "method": VBP, "metric": "contrast", "condition": "against(random)"}, lambda v: -0.1),
    6: where({"task": "t1", "method": VBP, "metric": "DD*"}, lambda v: v - 0.3),
    7: where({"task": "pairs", "model": "pairs", "method": VBP, "metric": "focus*"}, lambda v: 0.54),
    8: where({"task": "pairs", "model": "pretrained", "method": GBP, "metric": "contrast*"}, lambda v: 0.06),
    9: where({"method": "grad_cam", "metric": "B", "definition": "spearman_abs", "region": ""}, lambda v: 0.01),
    10: where({"task": "t1", "method": "fresh_noise", "metric": "E*"}, lambda v: 0.05),
    11: where({"method": "fresh_noise", "metric": "ssim"}, lambda v: 0.5),
    12: where({"method": IXG, "metric": "B", "region": "local"}, lambda v: 0.1),
    13: where({"method": GBP, "metric": "spearman_abs", "condition": "bottom_up*"}, lambda v: 0.6),
    14: where({"task": "pairs", "method": VBP, "metric": "right_minus_wrong"}, lambda v: -v),
    15: where({"task": "t", "method": GBP, "metric": "E", "condition": "against(labels)"}, lambda v: 0.2),
}


@pytest.mark.parametrize("number", FAILING)
def test_a_claim_fails_where_the_rows_say_otherwise(number):
    found = judged(number, FAILING[number])
    assert found["holds"] is False
    assert "fails: " in found["why"] or number == 9
    assert found["ours"]


MISSING = {
    1: {"task": "t", "method": GBP, "metric": "B"}, 2: {"task": "half", "method": VBP, "metric": "E.p"},
    3: {"task": "half", "metric": "focus"}, 4: {"task": "t2", "method": VBP, "metric": "E"},
    5: {"task": "t1", "metric": "contrast.low"}, 6: {"metric": "DD.high"},
    7: {"task": "pairs", "model": "pretrained", "metric": "focus"}, 8: {"model": "pretrained"},
    9: {"task": "t1", "definition": "spearman_abs"}, 10: {"method": "fresh_noise"}, 11: {"metric": "ssim"},
    12: {"region": "local"}, 13: {"condition": "bottom_up*"}, 14: {"metric": "wrong"},
    15: {"condition": "against(labels)"},
}  # fmt: skip


@pytest.mark.parametrize("number", MISSING)
def test_a_claim_stays_open_where_its_rows_are_missing(number):
    found = judged(number, where(MISSING[number], lambda value: None))
    assert found["holds"] is None
    assert found["why"]


def test_an_energy_above_zero_must_be_so_for_sure():
    assert judged(2, where({"task": "half", "method": VBP, "metric": "E.low"}, lambda v: 1e-9))["holds"] is True
    found = judged(2, where({"task": "half", "method": VBP, "metric": "E.low"}, lambda v: -1e-9))
    assert found["holds"] is False
    assert "half, VBP: E" in found["why"]


def test_a_missed_gate_is_named_and_an_erasure_voids_the_focus():
    found = judged(2, missed={"half": "accuracy"})
    assert found["holds"] is True
    assert found["why"] == "a gate was missed: half: accuracy 0.500, wanted 0.9 or more"
    assert judged(14, missed={"t2": "A erased"})["holds"] is True  # other tasks can be read
    assert judged(14, missed={"t1": "A erased", "t2": "A erased", "pairs": "A erased"})["holds"] is None
    void = judged(3, missed={"half": "A erased"})
    assert void["holds"] is None
    assert void["why"].endswith("so the focus is void")
    assert judged(3, missed={"half": "accuracy"})["holds"] is True
    assert "labels: accuracy" in judged(15, missed={"labels": "accuracy"})["why"]


def test_two_methods_must_be_turned_for_sure_to_make_another_order():
    """Grad-CAM above GBP on t and below it on t1 by the means, but no more than seeds differ."""

    def close(key: Key, value: float) -> float:
        if key[2:5] == ("grad_cam", "B", "spearman_abs") and not key[5]:
            near = {"t": 1 - 0.441, "t1": 1 - 0.409, "t2": 1 - 0.419}.get(key[0], 0.5)
            return near + 0.05 * (2 * (int(key[1][-2]) % 2) - 1)
        return value

    found = judged(9, close)
    assert found["holds"] is False
    assert "Kendall's tau 0.80, 0 pairs of 5 methods turned" in found["ours"]


def test_the_two_must_not_differ_in_dissociation():
    apart = where({"task": "t1", "method": GBP, "metric": "DD*"}, lambda v: v + 0.15)
    found = judged(6, apart)
    assert found["holds"] is False
    assert "the two differ by 0.1 or more" in found["why"]
    wide = where({"task": "t1", "metric": "DD.low"}, lambda v: 0.11)
    both = lambda key, value: wide(key, apart(key, value))  # noqa: E731
    assert judged(6, both)["holds"] is True  # their intervals overlap


def test_every_claim_names_a_figure_of_the_page():
    known = {one.name for one in figures("yona")}
    assert {claim.figure for claim in CLAIMS} <= known


# The headline


def test_methods_that_fail_one_check_and_pass_the_other():
    found = {one.method: one for one in checked(evidence())}
    assert (found["gradient"].original, found["gradient"].causal) == ("passes", "passes")
    assert (found[GBP].original, found[GBP].causal) == ("fails", "passes")
    assert (found["fresh_noise"].original, found["fresh_noise"].causal) == ("passes", "fails")
    assert (found["edge"].original, found["edge"].causal) == ("fails", "fails")
    said = sentences(evidence())
    named = ", ".join(label.partition("(")[0] for label in METHODS[1:])
    assert said[0] == f"Methods that fail the original check and pass the causal one: {named}."
    assert said[1] == "Methods and controls that pass the original check and fail the causal one: fresh_noise."


def test_a_missed_gate_leaves_the_causal_check_undecided_and_says_what_the_numbers_would():
    e = evidence(missed={"t2": "accuracy"})
    found = {one.method: one for one in checked(e)}
    assert (found[GBP].causal, found[GBP].leans) == ("undecided", "passes")
    assert found[GBP].why == "a gate was missed on t2"
    assert any("would pass" in sentence for sentence in sentences(e))


def test_both_papers_can_be_reproduced_at_once():
    said = reproduced(evidence())
    assert said["Yona & Greenfeld reproduced"] == "yes"
    assert said["Adebayo et al. reproduced"].startswith("no (")
    weak = where({"task": "t", "method": GBP, "metric": "E", "condition": "against(random)"}, lambda v: 0.05)
    said = reproduced(evidence(weak))
    assert said["Yona & Greenfeld reproduced"] == "yes"
    assert said["Adebayo et al. reproduced"] == "yes (E/B of GBP 0.11, of VBP 0.25)"
    weaker = where({"task": "t", "method": GBP, "metric": "E", "condition": "against(random)"}, lambda v: 0.07)
    said = reproduced(evidence(weaker))["Adebayo et al. reproduced"]
    assert said == "no (GBP is not insensitive on t; E/B of GBP 0.16, of VBP 0.25)"  # less, but not half as much
    blind = where({"task": "t1", "method": GBP, "metric": "DD.low"}, lambda v: 0.05)
    assert reproduced(evidence(blind))["Yona & Greenfeld reproduced"].startswith(
        "no (sensitive but not accurate: GBP on t1"
    )


def test_an_interval_over_seeds_is_students():
    one = over_seeds(np.array([0.1, 0.2, 0.3, 0.4]))
    reach = 3.182446 * np.std([0.1, 0.2, 0.3, 0.4], ddof=1) / 2
    assert (one.value, one.low, one.high) == pytest.approx((0.25, 0.25 - reach, 0.25 + reach))
