from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from serving.request.query import Fallback, RankAnswer, RankQuery, StageReport, StageStatus


def test_a_plain_query_asks_for_everything_and_overrides_nothing() -> None:
    query = RankQuery(user="u1", limit=5)
    assert (query.candidates, query.recent_items) == (None, None)
    assert (dict(query.context), dict(query.filters)) == ({}, {})
    assert query.rerank
    assert query.partial_ok
    assert not query.explain


def test_queries_share_no_context_and_cannot_be_changed_on_their_way() -> None:
    one, other = RankQuery(user="u1", limit=5), RankQuery(user="u1", limit=5)
    assert one == other
    assert one.context is not other.context
    with pytest.raises(FrozenInstanceError):
        one.limit = 6  # type: ignore[misc]


@pytest.mark.parametrize(("status", "fallback", "degraded"), [
    (StageStatus.COMPLETE, Fallback.NONE, False), (StageStatus.SKIPPED, Fallback.NONE, False),
    (StageStatus.DEGRADED, Fallback.NONE, True), (StageStatus.SKIPPED, Fallback.PREVIOUS_ORDER, True)])
def test_an_answer_is_degraded_when_a_stage_was_cut_or_replaced(
    status: StageStatus, fallback: Fallback, degraded: bool
) -> None:
    """A stage that nobody asked for is neither."""
    stages = [StageReport("retrieve", 9, 5, 40), StageReport("rank", 5, 5, 40, status, "", fallback)]
    assert RankAnswer([], stages, "shop-1", [], True).degraded is degraded


def test_a_stage_is_complete_unless_it_says_otherwise() -> None:
    report = StageReport("rank", 9, 5, 40)
    assert (report.status, report.cause) == (StageStatus.COMPLETE, "")
