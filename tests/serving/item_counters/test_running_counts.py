from __future__ import annotations

import numpy as np

from contracts.features.event_clock import SECOND, Measure
from serving.item_counters.running_counts import NEVER, Impressions, RunningCounts

MEASURES = [Measure("shown", 100), Measure("closed", 100), Measure("clicked", 100)]


def impression(at: int, clicked: int | None = None, slot: int = 1) -> Impressions:
    """In seconds; known as it was shown."""
    first = NEVER if clicked is None else clicked * SECOND
    return Impressions(np.array([at * SECOND]), np.array([at * SECOND]), np.array([first]),
                       np.array([slot], dtype=np.int32))


def at_seconds(counts: RunningCounts, second: int) -> list[int]:
    counts.advance(second * SECOND)
    return counts.counts[1].tolist()


def test_an_impression_is_shown_then_decided_with_its_click_then_too_old() -> None:
    counts = RunningCounts(MEASURES, 10, rows=2)
    counts.show(impression(0, clicked=4))
    found = [at_seconds(counts, second) for second in (0, 1, 9, 10, 99, 100)]
    assert found == [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]]
    assert len(counts) == 0


def test_a_click_that_comes_later_counts_from_then_on() -> None:
    counts = RunningCounts(MEASURES, 10, rows=2)
    counts.show(impression(0))
    assert at_seconds(counts, 20) == [1, 1, 0]
    counts.click(impression(0, clicked=30))
    assert at_seconds(counts, 29) == [1, 1, 0]
    assert at_seconds(counts, 30) == [1, 1, 1]
    assert at_seconds(counts, 100) == [0, 0, 0]


def test_slots_that_change_are_told_once_and_those_of_nobody_never() -> None:
    counts = RunningCounts(MEASURES, 10)
    counts.grow(3)
    many = Impressions(*(np.concatenate(parts) for parts in zip(
        impression(0, slot=2), impression(1, slot=2), impression(0, slot=-1), strict=True)))
    counts.show(many.of_somebody())
    assert counts.advance(5 * SECOND).tolist() == [2]
    assert counts.advance(6 * SECOND).tolist() == []
    assert counts.counts.tolist() == [[0, 0, 0], [0, 0, 0], [2, 0, 0]]


def test_other_counts_go_on_from_what_is_held() -> None:
    counts, others = RunningCounts(MEASURES, 10, rows=2), RunningCounts(MEASURES, 10, rows=2)
    counts.show(impression(0, clicked=4))
    assert at_seconds(counts, 5) == [1, 0, 0]
    others.resume(counts.held())
    assert others.counts[1].tolist() == [1, 0, 0]
    assert [at_seconds(others, second) for second in (9, 10, 100)] == [[1, 0, 0], [1, 1, 1], [0, 0, 0]]
