"""Too much of anything is refused by its field, and nothing is made of it."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from contracts.config.stages import Serve
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds, check_rank_counts, check_score_counts, said, texts

SERVE = Serve(max_candidates=3, max_placements=2, max_fields=2, max_values=2, max_text=10)
THREE_VALUES = {"a": pb.Value(), "b": pb.Value(), "c": pb.Value()}
THREE_FILTERS = {name: pb.Values() for name in "abc"}
LISTED = pb.Placement(candidate_list=pb.CandidateList(item_ids=["a", "b"]))


@pytest.mark.parametrize(("asked", "field"), [
    ({"user_id": "u" * 11}, "user_id"), ({"request_id": "u" * 11}, "request_id"),
    ({"candidates": list("abcd")}, "candidates"),
    ({"candidate_list": pb.CandidateList(item_ids=list("abcd"))}, "candidates"),
    ({"candidates": ["a", "b"], "candidate_list": pb.CandidateList(item_ids=["c", "d"])}, "candidates"),
    ({"context": THREE_VALUES}, "context"), ({"filters": THREE_FILTERS}, "filters"),
    ({"recent_items": pb.RecentItems(item_ids=list("abc"))}, "recent_items"),
    ({"features": {name: pb.Features() for name in "abcd"}}, "features"),
    ({"placements": [pb.Placement()] * 3}, "placements"), ({"placements": [LISTED] * 2}, "placements"),
    ({"placements": [pb.Placement(context=THREE_VALUES)]}, "placements[0].context"),
    ({"placements": [pb.Placement(), pb.Placement(filters=THREE_FILTERS)]}, "placements[1].filters"),
])
def test_a_rank_request_may_hold_so_much(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(OutOfBounds) as caught:
        check_rank_counts(said(pb.RankRequest(**asked)), SERVE)
    assert caught.value.field == field


@pytest.mark.parametrize(("asked", "field"), [
    ({"item_ids": list("abcd")}, "item_ids"), ({"user_id": "u" * 11}, "user_id"),
    ({"context": THREE_VALUES}, "context"),
    ({"features": {name: pb.Features() for name in "abcd"}}, "features"),
    ({"recent_items": pb.RecentItems(item_ids=list("abc"))}, "recent_items")])
def test_a_score_request_may_hold_so_much(asked: dict[str, Any], field: str) -> None:
    with pytest.raises(OutOfBounds) as caught:
        check_score_counts(said(pb.ScoreRequest(**asked)), SERVE)
    assert caught.value.field == field


def test_what_is_at_the_limit_passes() -> None:
    check_rank_counts(said(pb.RankRequest(
        user_id="u" * 10, candidates=list("abc"), context={"a": pb.Value(), "b": pb.Value()},
        placements=[pb.Placement()] * 2)), SERVE)
    assert texts("candidates", ["a" * 10, ""], SERVE) == ("a" * 10, "")


def test_a_long_text_is_named_by_its_place_and_shown_in_part() -> None:
    with pytest.raises(OutOfBounds) as caught:
        texts("candidates", ["a", "b" * 4_000_000], SERVE)
    assert caught.value.field == "candidates[1]"
    assert len(str(caught.value)) < 300
    assert "serve.max_text" in str(caught.value)


def test_a_refusal_allocates_no_more_than_the_message() -> None:
    request = pb.RankRequest(user_id="u", candidates=["x" * 4_000_000, *["a"] * 2000])
    tracemalloc.start()
    with pytest.raises(OutOfBounds):
        check_rank_counts(said(request), Serve())
    with pytest.raises(OutOfBounds):
        texts("candidates", request.candidates, Serve())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2 * 4_000_000 + 1_000_000
