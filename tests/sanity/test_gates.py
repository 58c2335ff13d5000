"""Gates: what passes, what misses, and what is said of it."""

import pytest

from saliometer.sanity.gates import Gate, accuracy_gate, chance_gate, erasure_gates, memory_gate, missed


def test_accuracy_is_that_of_the_worst_seed():
    assert accuracy_gate([0.99, 0.985], 0.985) == Gate("accuracy of the worst seed", 0.985, "0.985 or more", True)
    assert not accuracy_gate([0.99, 0.984], 0.985).passed


@pytest.mark.parametrize(("seeds", "worst", "passed"), [((0.76, 0.79), 0.79, True), ((0.77, 0.85), 0.85, False)])
def test_accuracy_may_have_an_upper_bar_as_well(seeds, worst, passed):
    found = accuracy_gate(seeds, 0.74, 0.80)
    assert (found.value, found.bar, found.passed) == (worst, "0.74 to 0.8", passed)


def test_random_models_are_at_chance_on_average():
    assert chance_gate([0.05, 0.16], 10).passed
    assert chance_gate([0.13, 0.129], 10).passed
    assert not chance_gate([0.14, 0.13], 10).passed
    assert not chance_gate([0.4, 0.45], 2).passed


def test_erasing_what_decides_leaves_chance_or_less():
    good, still = erasure_gates([0.99, 0.99], [0.0, 0.35], [0.97, 0.99], classes=3)
    assert (good.value, good.passed) == (0.35, True)
    assert still.value == pytest.approx(0.02)
    assert still.passed
    assert not erasure_gates([0.99], [0.4], [0.99], classes=3)[0].passed


def test_erasing_what_distracts_changes_little_either_way():
    assert not erasure_gates([0.90], [0.1], [0.96], classes=10)[1].passed
    assert not erasure_gates([0.90], [0.1], [0.85], classes=10)[1].passed
    assert len(erasure_gates([], [0.1], [], classes=10)) == 1  # nothing distracts


def test_labels_in_disorder_are_known_by_heart_by_every_seed():
    assert memory_gate([0.99, 0.951]).passed
    found = memory_gate([0.99, 0.95])
    assert (found.value, found.bar, found.passed) == (0.95, "more than 0.95", False)


def test_what_was_missed_is_said_with_value_and_bar():
    said = missed([accuracy_gate([0.974], 0.985), chance_gate([0.1], 10)])
    assert said == "accuracy of the worst seed is 0.974, wanted 0.985 or more"
    assert missed([chance_gate([0.1], 10)]) == ""
