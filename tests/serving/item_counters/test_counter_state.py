from __future__ import annotations

from serving.item_counters.counter_state import NO_COUNTERS


def test_where_nothing_is_counted_there_is_no_age() -> None:
    assert NO_COUNTERS == (None, 0, "", 0, 0)
