"""The rule of sanity.md 3.6, case by case."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saliometer.sanity.gates import Gate
from saliometer.sanity.verdict import INSENSITIVE, SENSITIVE, UNDECIDED, Focused, verdict
from saliometer.summary import Estimate

GOOD = Focused(Estimate(0.3, 0.2, 0.4), Estimate(0.6, 0.5, 0.7), Estimate(0.35, 0.3, 0.4), Estimate(0.33, 0.32, 0.34))
MISSED = Gate("accuracy of the worst seed", 0.97, "0.985 or more", False)


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (-0.01, 0.019, 0.5, INSENSITIVE),
        (0.0, 0.0, 1.0, INSENSITIVE),
        (0.001, 0.019, 0.001, INSENSITIVE),  # sure, and too small to count
        (-0.01, 0.02, 0.5, UNDECIDED),  # the limit itself is not below
        (0.05, 0.15, 0.009, SENSITIVE),
        (0.05, 0.15, 0.01, UNDECIDED),
        (0.05, 0.15, 0.029, UNDECIDED),  # what four against four can reach at best
        (0.0, 0.15, 0.001, UNDECIDED),
        (-0.01, 0.15, 0.001, UNDECIDED),
        (math.nan, math.nan, math.nan, UNDECIDED),
    ],
)
def test_the_word_follows_from_the_limits_of_e_and_p(low, high, p, word):
    found = verdict(Estimate((low + high) / 2, low, high), p)
    assert found.word == word
    assert found.reason
    assert not found.accurate


@pytest.mark.parametrize(
    ("focused", "accurate"),
    [
        (GOOD, True),
        (Focused(Estimate(0.3, 0.10, 0.4), GOOD.trained, GOOD.random, GOOD.area), False),
        (Focused(GOOD.dissociation, GOOD.trained, Estimate(0.4, 0.3, 0.5), GOOD.area), False),  # they touch
        (Focused(GOOD.dissociation, GOOD.trained, GOOD.random, Estimate(0.5, 0.49, 0.51)), False),
        (Focused(Estimate(math.nan, math.nan, math.nan), GOOD.trained, GOOD.random, GOOD.area), False),
    ],
)
def test_accurate_needs_a_dissociation_and_a_focus_above_both_references(focused, accurate):
    found = verdict(Estimate(0.1, 0.05, 0.15), 0.001, focused=focused)
    assert found.accurate == accurate
    assert str(found) == ("sensitive, accurate" if accurate else "sensitive")


@given(st.floats(-0.1, 0.5), st.floats(0, 0.3), st.floats(0, 1))
def test_a_missed_gate_is_undecided_whatever_the_numbers_say(low, reach, p):
    found = verdict(Estimate(low, low, low + reach), p, [MISSED], GOOD)
    assert (found.word, found.accurate) == (UNDECIDED, False)
    assert found.reason == "accuracy of the worst seed is 0.970, wanted 0.985 or more"
