"""Known answers, and that numbers and arrays tell the same."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.features.event_clock import (
    SECOND,
    Measure,
    clicks_it,
    closed,
    counted,
    entered,
    learned,
    measures,
    statistic_of,
)


def test_an_impression_counts_from_when_it_is_known_and_never_at_its_own_moment() -> None:
    assert [entered(10, known, max) for known in (10, 11, 30)] == [11, 11, 30]


def test_it_is_decided_once_its_label_window_has_closed_and_it_is_known() -> None:
    assert closed(0, 1, 2, max) == 2 * SECOND
    assert closed(0, 3 * SECOND, 2, max) == 3 * SECOND


def test_a_click_is_learned_with_its_impression_at_the_earliest_and_counts_in_a_rate_once_that_is_decided() -> None:
    assert [learned(20, known, max) for known in (5, 40)] == [20, 40]
    assert [counted(30, known, max) for known in (20, 40)] == [30, 40]


@pytest.mark.parametrize(("click", "its"), [(9, False), (10, True), (15, True), (16, False)])
def test_a_click_within_the_label_window_is_of_the_impression(click: int, its: bool) -> None:
    assert clicks_it(click, 10, 15) is its


def test_a_measure_counts_from_entry_to_exit() -> None:
    measure = Measure("shown", 10)
    found = [measure.counts(0, 1, moment) for moment in (0, 1, 10 * SECOND - 1, 10 * SECOND)]
    assert found == [False, True, True, False]
    assert not measure.ever(0, 10 * SECOND)
    assert not measure.counts(0, 10 * SECOND, 10 * SECOND - 1)
    assert Measure("shown", None).counts(0, 1, 99 * SECOND)


def test_arrays_tell_what_numbers_do() -> None:
    draw = np.random.default_rng(2)
    at, known, label = (draw.integers(0, 40 * SECOND, 200) for _ in range(3))
    enters = entered(at, known, np.maximum)
    closes, learns = closed(at, enters, 5, np.maximum), learned(enters, label, np.maximum)
    counts = Measure("clicked", 12).counts(at, counted(closes, learns, np.maximum), 30 * SECOND)
    for row in range(200):
        one = entered(int(at[row]), int(known[row]), max)
        entry = counted(closed(int(at[row]), one, 5, max), learned(one, int(label[row]), max), max)
        assert counts[row] == Measure("clicked", 12).counts(int(at[row]), entry, 30 * SECOND)


def test_a_rate_is_of_the_decided_and_leans_on_the_prior() -> None:
    assert measures("count", 5) == (Measure("shown", 5),)
    assert measures("rate", 5) == (Measure("closed", 5), Measure("clicked", 5))
    assert statistic_of("count", (7.0,), 0.1, 20.0) == 7.0
    assert statistic_of("rate", (10.0, 3.0), 0.1, 20.0) == pytest.approx((3 + 2) / (10 + 20))
