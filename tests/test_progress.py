"""Time left: by the pace of this run alone."""

import pytest

from saliometer.progress import Clock, duration


def told(*moments: tuple[float, float]) -> list[str]:
    """What a clock says at (seconds, share)."""
    now = 0.0
    clock, said = Clock(lambda: now), []
    for now, share in moments:  # noqa: B007
        said.append(clock.left(share))
    return said


def test_time_left_follows_the_pace():
    assert told((0, 0), (0.5, 0.05), (10, 0.1), (20, 0.25)) == [
        "time left: ...",
        "time left: ...",
        "1 min 30 s left",
        "1 min 0 s left",
    ]


def test_what_an_earlier_run_did_cost_no_time_of_this_one():
    """From 80 to 85 % in 30 s: the other 15 % take 90 s, not 5."""
    assert told((100, 0.80), (130, 0.85))[-1] == "1 min 30 s left"


def test_another_try_starts_anew():
    assert told((0, 0.1), (10, 0.6), (20, 0.1), (30, 0.2))[-1] == "1 min 20 s left"


def test_at_the_end_nothing_is_left():
    assert told((0, 0.0), (0.2, 1.0)) == ["time left: ...", "0 s left"]


@pytest.mark.parametrize(("seconds", "words"), [(7.6, "8 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_durations_are_words(seconds, words):
    assert duration(seconds) == words
