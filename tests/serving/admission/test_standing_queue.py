from __future__ import annotations

import pytest

from serving.admission.standing_queue import INTERVAL, LONGEST, StandingQueue, tolerated

SHORT, LONG = (0.01, 0.09), (0.09, 0.01)  # seconds waited and left, of 0.1


def taken(*heads: tuple[float, tuple[float, float]]) -> StandingQueue:
    """(moment, (seconds waited, left)) of each that left the head."""
    queue = StandingQueue()
    for now, (waited, left) in heads:
        queue.taken(waited, left, now)
    return queue


def test_half_of_the_time_may_be_spent_in_waiting_and_no_more_than_the_longest() -> None:
    assert tolerated(0.1) == pytest.approx(0.05)
    assert tolerated(10.0) == tolerated(float("inf")) == LONGEST


def test_a_new_queue_does_not_stand() -> None:
    assert not taken().stands


def test_a_burst_is_no_standing_queue() -> None:
    assert not taken((0.0, LONG), (0.9 * INTERVAL, LONG)).stands


def test_long_waits_for_a_whole_interval_are() -> None:
    assert taken((0.0, LONG), (0.5 * INTERVAL, LONG), (INTERVAL, LONG)).stands


def test_one_short_wait_begins_the_interval_anew() -> None:
    assert not taken((0.0, LONG), (0.5 * INTERVAL, SHORT), (INTERVAL, LONG)).stands


def test_the_same_wait_is_short_for_who_has_more_time() -> None:
    assert not taken((0.0, (0.09, 1.0)), (INTERVAL, (0.09, 1.0))).stands


def test_it_stands_until_nobody_waits() -> None:
    """That those let in now do not wait long is no sign that fewer come."""
    assert taken((0.0, LONG), (INTERVAL, LONG), (2 * INTERVAL, SHORT), (3 * INTERVAL, SHORT)).stands
