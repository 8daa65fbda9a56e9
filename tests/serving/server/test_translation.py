"""Between the wire and the funnel nothing is lost and nothing is made up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.event_features import ToldEvents
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds
from serving.request.query import (
    ContextValue,
    Fallback,
    PageAnswer,
    RankAnswer,
    RankedItem,
    RankQuery,
    Reason,
    Sold,
    StageReport,
    StageStatus,
)
from serving.request.wire_values import to_value
from serving.server.translation import FALLBACK, STATUS, to_page_query, to_query, to_response, to_score_query

SERVE = Serve(default_limit=10)
ITEM = RankedItem(item="i1", probability=0.25, score=500.0, sold=Sold(2.0, 1.5, "i2", 375.0), channel="popularity",
                  stage_scores={"rank": 0.25}, reasons=[Reason("taste", -0.5)])
ANSWER = RankAnswer([ITEM], [StageReport("rank", 9, 5, 40, StageStatus.DEGRADED, "late")], "shop-1", ["gone"], True)


def test_the_smallest_request_asks_for_the_defaults() -> None:
    assert to_query(pb.RankRequest(user_id="u1"), SERVE) == RankQuery(user="u1", limit=10)


def test_a_full_request_goes_over_whole() -> None:
    request = pb.RankRequest(
        user_id="u1", limit=3, candidates=["a"], skip_rerank=True, reasons=True, partial_ok=False,
        context={"hour": pb.Value(integer=7)}, filters={"category": pb.Values(values=["music", "games"])},
        excluded={"brand": pb.Values(values=["x"])}, ranges={"bid": pb.Range(at_least=0), "stock": pb.Range(at_most=2)},
        recent_items=pb.RecentItems(item_ids=["b"]))
    assert to_query(request, SERVE) == RankQuery(
        user="u1", limit=3, candidates=("a",), context={"hour": 7}, filters={"category": ("music", "games")},
        excluded={"brand": ("x",)}, ranges={"bid": (0.0, math.inf), "stock": (-math.inf, 2.0)},
        recent_items=("b",), rerank=False, explain=True, partial_ok=False)


def told(times: tuple[float, ...] = (), **columns: list[str]) -> pb.RankRequest:
    events = pb.RecentEvents(times=times, columns={name: pb.Values(values=values) for name, values in columns.items()})
    return pb.RankRequest(user_id="u", recent_items=pb.RecentItems(item_ids=["a", "b"]), recent_events=events)


def test_what_is_told_of_recent_items_is_one_each() -> None:
    both = to_query(told((1.5, 0), kind=["order", ""]), SERVE).told
    assert both == ToldEvents([1_500_000, 0], {"kind": ["order", None]})
    assert to_query(told((math.nan, 1e300)), SERVE).told.times == [0, 0]
    assert to_query(told(kind=["order", "click"]), SERVE).told.times == []
    for wrong, field in ((told((1.0,)), "recent_events.times"), (told(kind=["x"] * 3), "recent_events.columns[kind]")):
        with pytest.raises(RequestError, match="for 2 recent_items") as caught:
            to_query(wrong, SERVE)
        assert caught.value.field == field


FULL = {f"f{n}": pb.Value(list=pb.ValueList(values=[pb.Value(text="a")] * 200)) for n in range(50)}  # 10,000 values
PAGE = pb.RankRequest(user_id="u", context=FULL, placements=[pb.Placement(context=FULL)] * 5)
SIX = {f"item {n}": pb.Features(values=FULL) for n in range(6)}


@pytest.mark.parametrize(("translate", "field"), [
    (lambda: to_query(pb.RankRequest(user_id="u", features=SIX), SERVE), "features"),
    (lambda: to_score_query(pb.ScoreRequest(user_id="u", item_ids=["a"], features=SIX), SERVE), "features"),
    (lambda: to_page_query(PAGE, SERVE), "placements[4].context")])
def test_what_a_request_describes_is_bounded_together(translate: Callable[[], object], field: str) -> None:
    """Each within its own limits: to read all of them would take half a second."""
    with pytest.raises(OutOfBounds, match="more than 50000") as caught:
        translate()
    assert caught.value.field.startswith(field)


PLACED = pb.RankRequest(
    user_id="u1", context={"hour": pb.Value(integer=7)}, reasons=True, partial_ok=False,
    features={"new": pb.Features(values={"category": to_value("music")}, bid=2.0)},
    placements=[
        pb.Placement(name="top", limit=3, filters={"category": pb.Values(values=["music"])},
                     context={"hour": pb.Value(integer=8), "slot": to_value("top")}),
        pb.Placement(name="side", candidate_list=pb.CandidateList(item_ids=["a", "new"]))])


def test_placements_are_queries_of_one_requester() -> None:
    page = to_page_query(PLACED, SERVE)
    whole = RankQuery("u1", 10, {"hour": 7}, explain=True, partial_ok=False, bids={"new": 2.0})
    assert page.names == ("top", "side")
    assert page.queries == (
        replace(whole, placement="top", limit=3, context={"hour": 8, "slot": "top"}, filters={"category": ("music",)}),
        replace(whole, placement="side", candidates=("a", "new"), features={"new": {"category": "music"}}))


@pytest.mark.parametrize(("more", "field"), [
    ({"limit": 3}, "limit"), ({"candidates": ["a"]}, "candidates"), ({"candidate_list": pb.CandidateList()},
     "candidate_list"), ({"filters": {"category": pb.Values(values=["x"])}}, "filters"),
    ({"features": {"stray": pb.Features()}}, r"features\[stray\]"),
    ({"placements": [pb.Placement(name="c", context={"hour": pb.Value()})]}, r"placements\[2\]\.context\[hour\]"),
])
def test_what_placements_say_is_not_said_twice(more: dict[str, Any], field: str) -> None:
    wrong = pb.RankRequest()
    wrong.CopyFrom(PLACED)
    wrong.MergeFrom(pb.RankRequest(**more))
    with pytest.raises(RequestError, match=f"^{field}: "):
        to_page_query(wrong, SERVE)


def test_slates_go_over_under_their_names() -> None:
    late = replace(ANSWER, items=[])
    fine = RankAnswer([ITEM], [], "shop-1", [], True)
    wire = to_response(PageAnswer(("top", "side"), [fine, late]), "r1", 60.0)
    assert (wire.request_id, wire.bundle_version, wire.known_user, wire.degraded) == ("r1", "shop-1", True, True)
    assert not wire.items
    top, side = wire.placements
    assert (top.name, top.items[0].item_id, top.degraded) == ("top", "i1", False)
    assert (side.name, side.degraded) == ("side", True)
    assert (list(side.unknown_candidates), side.stages[0].name) == (["gone"], "rank")


def test_an_empty_list_of_candidates_is_not_the_lack_of_one() -> None:
    empty = pb.RankRequest(user_id="u1", candidate_list=pb.CandidateList())
    assert to_query(empty, SERVE).candidates == ()
    named = pb.RankRequest(user_id="u1", candidate_list=pb.CandidateList(item_ids=["a"]))
    assert to_query(named, SERVE).candidates == ("a",)


def test_every_fallback_has_a_word_on_the_wire() -> None:
    assert set(FALLBACK) == set(Fallback)
    assert len(set(FALLBACK.values())) == len(Fallback)


def test_a_zero_and_an_empty_history_are_not_the_defaults() -> None:
    query = to_query(pb.RankRequest(user_id="u1", limit=0, recent_items=pb.RecentItems()), SERVE)
    assert (query.limit, query.recent_items) == (0, ())


@pytest.mark.parametrize("value", ["phone", "", 7, 0, 0.5, 0.0, True, False])
def test_context_values_keep_their_type(value: ContextValue) -> None:
    query = to_query(pb.RankRequest(user_id="u1", context={"field": to_value(value)}), SERVE)
    found = query.context["field"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("request_", "field"), [
    (pb.RankRequest(), "user_id"), (pb.RankRequest(user_id="u", context={"hour": pb.Value()}), r"context\[hour\]"),
])
def test_what_is_empty_is_refused_by_name(request_: pb.RankRequest, field: str) -> None:
    with pytest.raises(RequestError, match=field):
        to_query(request_, SERVE)


def test_an_answer_goes_over_whole() -> None:
    wire = to_response(ANSWER, "r1", 60.0)
    assert (wire.request_id, wire.bundle_version, wire.known_user, wire.bundle_age_seconds) == (
        "r1", "shop-1", True, 60.0)
    assert list(wire.unknown_candidates) == ["gone"]
    [item], [stage] = wire.items, wire.stages
    assert (item.item_id, item.probability, item.score, item.price, item.channel) == (
        "i1", 0.25, 500.0, 1.5, "popularity")
    assert (dict(item.stage_scores), item.reasons[0].field, item.reasons[0].logit_change) == (
        {"rank": 0.25}, "taste", -0.5)
    assert (stage.name, stage.candidates_in, stage.candidates_out, stage.microseconds, stage.cause) == (
        "rank", 9, 5, 40, "late")
    assert stage.status == pb.StageReport.DEGRADED


def test_an_item_without_a_price_has_none_on_the_wire() -> None:
    free = replace(ITEM, sold=None)
    assert not to_response(RankAnswer([free], [], "shop-1", [], True), "r1", 0.0).items[0].HasField("price")


def test_every_status_has_a_name_of_its_own_on_the_wire() -> None:
    assert STATUS.keys() == set(StageStatus)
    assert len(set(STATUS.values())) == len(STATUS)


def test_lists_go_over_and_hold_neither_lists_nor_nothing() -> None:
    request = pb.RankRequest(user_id="u1", context={"moods": to_value(("calm", 3)), "none": to_value(())})
    assert to_query(request, SERVE).context == {"moods": ("calm", 3), "none": ()}
    for wrong, said in ((to_value(("calm",)), "a list within"), (pb.Value(), "no value within")):
        nested = pb.Value(list=pb.ValueList(values=[to_value("calm"), wrong]))
        with pytest.raises(RequestError, match=said) as caught:
            to_query(pb.RankRequest(user_id="u1", context={"moods": nested}), SERVE)
        assert caught.value.field == "context[moods][1]"
