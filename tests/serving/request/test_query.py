from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from serving.request.query import RankQuery, StageReport, StageStatus


def test_a_plain_query_asks_for_everything_and_overrides_nothing() -> None:
    query = RankQuery(user="u1", limit=5)
    assert (query.candidates, query.recent_items) == (None, None)
    assert (dict(query.context), dict(query.filters)) == ({}, {})
    assert query.rerank
    assert query.explain


def test_queries_share_no_context_and_cannot_be_changed_on_their_way() -> None:
    one, other = RankQuery(user="u1", limit=5), RankQuery(user="u1", limit=5)
    assert one == other
    assert one.context is not other.context
    with pytest.raises(FrozenInstanceError):
        one.limit = 6  # type: ignore[misc]


def test_a_stage_is_complete_unless_it_says_otherwise() -> None:
    report = StageReport("rank", 9, 5, 40)
    assert (report.status, report.cause) == (StageStatus.COMPLETE, "")
