"""Claims in general: margins and their verdicts, what is missing, what is printed."""

import json

import numpy as np
import pytest

from saliometer.studies._claims import Claim, Finding, MissingError, least, margins, most, nth, print_claims, shown

SURE = np.array([2.0, 1.0, 2.0, 3.0])
UNSURE = np.array([2.0, -1.0, 2.0, 3.0])
NEGATIVE = np.array([-2.0, -1.0, -2.0, -3.0])
UNDEFINED = np.array([np.nan, 1.0, np.nan])


def test_every_margin_has_to_be_positive():
    assert margins({"one": SURE, "two": SURE}).holds is True
    found = margins({"one": SURE, "two": NEGATIVE})
    assert found.holds is False
    assert found.why == "fails: two"
    assert "one: +2 [1.05, 2.95]; two: -2 [-2.95, -1.05]" in found.ours


def test_a_margin_of_0_fails():
    assert margins({"one": np.zeros(3)}).holds is False


def test_an_interval_that_holds_0_is_told_and_decides_only_where_it_has_to_be_sure():
    found = margins({"one": UNSURE})
    assert found.holds is True
    assert found.why == "the interval holds 0 for one"
    assert margins({"one": UNSURE}, sure=["one"]).holds is False
    assert margins({"one": UNSURE, "two": SURE}, sure=["two"]).holds is True


def test_an_undefined_margin_leaves_it_open_unless_another_fails():
    found = margins({"one": SURE, "two": UNDEFINED})
    assert found.holds is None
    assert found.why == "undefined: two"
    assert margins({"one": NEGATIVE, "two": UNDEFINED}).holds is False


def test_one_image_has_no_interval_but_a_verdict():
    found = margins({"one": np.array([1.0, np.nan])})
    assert found.holds is True
    assert "[nan, nan]" in found.ours


def test_a_claim_is_open_where_something_is_missing_and_other_errors_are_not_hidden():
    def missing(_: object) -> Finding:
        raise MissingError("the run holds no insertion")

    found = Claim(3, "text", "60.1", missing).judged(None)
    assert found == {
        "id": 3, "text": "text", "paper": "60.1", "ours": "", "holds": None, "why": "the run holds no insertion",
        "figure": "",
    }  # fmt: skip
    with pytest.raises(ZeroDivisionError):
        Claim(3, "text", "", lambda _: Finding(str(1 / 0), True)).judged(None)


def test_verdicts_can_be_written_as_json():
    worst = np.float64(0.3)
    found = Claim(1, "text", "", lambda _: Finding("0.3", worst <= 1e-9)).judged(None)
    assert json.loads(json.dumps(found))["holds"] is False


def test_orders_of_draws():
    one, two, three = np.array([1.0, 5.0]), np.array([2.0, 4.0]), np.array([3.0, 0.0])
    assert least([one, two, three]).tolist() == [1, 0]
    assert most([one, two, three]).tolist() == [3, 5]
    assert nth([one, two, three], 1).tolist() == [3, 5]
    assert nth([one, two, three], 2).tolist() == [2, 4]
    assert shown({"a": one, "b": np.array([12.345])}) == "a 1, b 12.3"


def test_claims_are_printed_with_their_verdicts_and_brackets_as_they_are(capsys):
    base = {"text": "text [bold]x", "paper": "1", "ours": "margins [1, 2]", "why": ""}
    print_claims([{"id": i, **base, "holds": holds} for i, holds in enumerate((True, False, None, True), 1)])
    said = capsys.readouterr().out
    assert "2 hold, 1 fail, 1 are open." in said
    assert "[bold]x" in said
    assert "[1, 2]" in said
    for word in ("holds", "fails", "open"):
        assert word in said
