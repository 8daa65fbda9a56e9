"""An impression counts in a window from its entry until it is as old as the window, by the definition of the measures;
whatever the steps by which time goes on."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.features.event_clock import SECOND, Measure
from serving.item_counters.timeline import Timeline

WINDOWS = (3, 10, 40)


def by_definition(at: np.ndarray, entry: np.ndarray, slots: np.ndarray, window: int, moment: int) -> list[int]:
    counts = Measure("shown", window).counts(at, entry, moment)
    return np.bincount(slots[counts], minlength=4).tolist()


@pytest.mark.parametrize("step", [1, 7])
def test_counts_are_those_of_the_definition_at_every_step(step: int) -> None:
    draw, line = np.random.default_rng(step), Timeline(WINDOWS)
    at, entry, slots = (np.empty(0, np.int64) for _ in range(3))
    counts = {window: np.zeros(4, np.int64) for window in WINDOWS}
    for moment in range(100 * SECOND, 200 * SECOND, step * SECOND // 2):
        more = draw.integers(0, 5)
        new = moment + draw.integers(-50, 5, more) * SECOND // 2  # late ones, and some that will have been
        enters, whose = new + draw.integers(1, 30, more) * SECOND // 2, draw.integers(0, 4, more)
        line.add(new, enters, whose)
        at, entry, slots = (np.concatenate(pair) for pair in ((at, new), (entry, enters), (slots, whose)))
        for window, changed, by in line.advance(moment):
            np.add.at(counts[window], changed, by)
        for window in WINDOWS:
            assert counts[window].tolist() == by_definition(at, entry, slots, window, moment)


def test_what_no_window_can_count_any_more_is_not_held() -> None:
    line = Timeline(WINDOWS)
    line.add(np.array([0, 30 * SECOND]), np.array([1, 60 * SECOND]), np.array([0, 0]))
    line.advance(50 * SECOND)
    assert len(line) == 1
    line.advance(70 * SECOND)
    assert len(line) == 0


def test_another_line_goes_on_from_what_is_held_at_any_step() -> None:
    draw = np.random.default_rng(3)
    line, counts = Timeline(WINDOWS), np.zeros((len(WINDOWS), 4), np.int64)
    for moment in range(100 * SECOND, 200 * SECOND, SECOND):
        more = draw.integers(0, 5)
        new = moment + draw.integers(-50, 5, more) * SECOND // 2
        line.add(new, new + draw.integers(1, 30, more) * SECOND // 2, draw.integers(0, 4, more))
        for window, changed, by in line.advance(moment):
            np.add.at(counts[WINDOWS.index(window)], changed, by)
        other, again = Timeline(WINDOWS), np.zeros_like(counts)
        for window, changed, by in other.resume(line.held()):
            np.add.at(again[WINDOWS.index(window)], changed, by)
        assert again.tolist() == counts.tolist()
        assert len(other) == len(line)
        line = other
    assert counts.any()
