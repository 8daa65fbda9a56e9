"""Known answers; that they are those of the pipelines is in tests/serving/test_parity_of_freshness.py."""

from __future__ import annotations

import pytest

from contracts.features.event_features import ToldEvents
from serving.events.shown import Row, Shown
from tests.serving.recorded_events import SECOND, recorded_features

VISITS = recorded_features().of_side("user")[0]
ROWS: list[Row] = [
    (0, 1, "a", None, None, None), (SECOND, SECOND + 1, "b", 2 * SECOND, 3 * SECOND, '{"new": true, "stars": 4}'),
    (2 * SECOND, 20 * SECOND, "c", 2 * SECOND, 4 * SECOND, '{"stars": null, "far": "x"}')]


def test_a_history_is_newest_click_first_of_what_is_known() -> None:
    found = Shown.of(ROWS, 10)
    assert [found.history(at * SECOND, 5) for at in (2, 3, 20)] == [(), ("b",), ("c", "b")]
    assert found.history(20 * SECOND, 1) == ("c",)
    assert found.history(20 * SECOND, 5, after=3 * SECOND) == ("c",)


def test_what_is_told_goes_with_the_history_as_the_pipelines_write_it() -> None:
    told = Shown.of(ROWS, 10).told(["new", "stars"], 20 * SECOND, 5)
    assert told == ToldEvents([2 * SECOND, 2 * SECOND], {"new": [None, "true"], "stars": [None, "4"]})
    assert Shown.of(ROWS, 10).told(["new"], 20 * SECOND, 1).columns == {"new": [None]}


@pytest.mark.parametrize(("at", "count", "rate"), [(1, 1, 0.1), (10, 2, 2 / 21), (11, 2, 3 / 22), (61, 1, 3 / 21)])
def test_a_rate_counts_decided_impressions_alone(at: int, count: float, rate: float) -> None:
    """The label window of 10 s of the third has closed when it becomes known."""
    found = Shown.of(ROWS, 10).counters(VISITS, at * SECOND, 0.1)
    assert found["visits_count_1m"] == count
    assert found["visits_rate_1m"] == pytest.approx(rate)


def test_the_newest_is_what_was_learned_last() -> None:
    assert Shown.of(ROWS, 10).newest == 20 * SECOND
    assert Shown.of(ROWS[:2], 10).newest == 3 * SECOND
    assert Shown.of([], 10).newest == 0
