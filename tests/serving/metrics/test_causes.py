"""Every sentence that the funnel gives as a cause has a word of its own, and there are few words."""

from __future__ import annotations

import pytest

from serving.metrics.causes import CAUSES, cause_of, is_degraded
from serving.request.query import MORE_COMES, Fallback, StageReport, StageStatus
from serving.stages.request_run import OVERRAN
from serving.stages.rerank import NO_TIME
from serving.stages.scoring_stage import cut_status
from serving.users.user_reader import NOT_IN_TIME
from serving.users.user_tables import NO_TABLES


@pytest.mark.parametrize(("cause", "word"), [
    (NO_TIME, "no_time"), (OVERRAN, "overran"), (MORE_COMES, "overload"),
    (cut_status(50, 200)[1], "cut"), ("it failed: ValueError", "failed"),
    ("the user's vector could not be computed", "no_user_vector"), ("no time for channel ease", "channel"),
    (NOT_IN_TIME, "user_store"), (NO_TABLES, "user_store"), ("the events cannot be read (locked)", "events"),
    ("channel sasrec failed: ValueError", "channel"), ("there are no scores of the ranker to explain", "other"),
])
def test_a_sentence_becomes_a_word(cause: str, word: str) -> None:
    found = cause_of(StageReport("rank", 1, 1, 1, StageStatus.DEGRADED, cause))
    assert found == word
    assert found in CAUSES


def test_what_nobody_asked_for_is_not_degraded() -> None:
    assert not is_degraded(StageReport("rerank", 5, 5, 0, StageStatus.SKIPPED, "the request asked for none"))
    assert is_degraded(StageReport("rank", 5, 5, 0, StageStatus.SKIPPED, NO_TIME, Fallback.PREVIOUS_ORDER))
