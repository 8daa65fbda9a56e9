from __future__ import annotations

from benchmarks.freshness.kills import Withdrawals


def test_nothing_is_acknowledged_by_a_server_that_is_not_there() -> None:
    told = Withdrawals(100)
    told.send("127.0.0.1:1")
    assert told.acknowledged == []
