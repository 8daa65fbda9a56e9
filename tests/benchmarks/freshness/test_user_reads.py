from __future__ import annotations

import pytest

from benchmarks.freshness.user_reads import AT_ONCE, drawn_rows, main
from tests.benchmarks.printed_figures import last_line
from tests.serving.running_redis import needs_redis


def test_every_user_has_a_row() -> None:
    users = [user for rows in drawn_rows(AT_ONCE + 1) for user, _ in rows]
    assert len(set(users)) == AT_ONCE + 1


@needs_redis
def test_both_stores_are_read_and_filled(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--users", "50", "--reads", "20", "--json"])
    found = last_line(capsys.readouterr().out)["user_reads"]
    for name in ("p50_us", "p99_us", "publish_s"):
        assert found[name].keys() == {"embedded", "redis"}
        assert all(value > 0 for value in found[name].values())
