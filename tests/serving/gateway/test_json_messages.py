"""JSON as people write it is the message that the proto says, and every message comes back."""

from __future__ import annotations

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import RequestError
from serving.gateway.json_messages import to_json, to_message
from serving.proto import sluice_pb2 as pb
from serving.request.query import ContextValue
from serving.request.wire_values import to_value

SCALARS = st.one_of(st.text(max_size=5), st.booleans(), st.integers(-(2**63), 2**63 - 1),
                    st.floats(allow_nan=False, allow_infinity=False))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3).map(tuple))


@given(st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=4))
def test_values_are_given_as_what_they_hold(context: dict[str, ContextValue]) -> None:
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in context.items()}
    heard = to_message({"user_id": "u", "context": given}, pb.RankRequest())
    assert heard == pb.RankRequest(user_id="u", context={name: to_value(value) for name, value in context.items()})


def test_both_forms_and_both_ways_of_writing_names_are_taken() -> None:
    short = {"user_id": "u", "candidate_list": ["a", "b"], "recent_items": [], "filters": {"tier": ["x"]},
             "features": {"a": {"values": {"price": 2}, "bid": 1.5}}, "placements": [{"name": "top", "limit": 2,
                                                                                      "context": {"hour": 7}}]}
    long = {"userId": "u", "candidateList": {"itemIds": ["a", "b"]}, "recentItems": {},
            "filters": {"tier": {"values": ["x"]}},
            "features": {"a": {"values": {"price": {"integer": 2}}, "bid": 1.5}},
            "placements": [{"name": "top", "limit": 2, "context": {"hour": {"integer": 7}}}]}
    heard = to_message(short, pb.RankRequest())
    assert heard == to_message(long, pb.RankRequest())
    assert heard.HasField("recent_items")
    assert heard.features["a"].values["price"].integer == 2


@pytest.mark.parametrize(("given", "what"), [
    ([], "a list"), ("u", "text"), (None, "null"), (3, "a number"), ({"user": "u"}, "user"),
    ({"limit": "many"}, "limit"), ({"context": {"hour": None}}, "context"), ({"user_id": 7}, "user_id")])
def test_what_is_no_message_is_named(given: object, what: str) -> None:
    with pytest.raises(RequestError, match=what):
        to_message(given, pb.RankRequest())


def test_a_message_of_a_thousand_levels_is_refused() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(RequestError):
        to_message({"context": {"tags": deep}}, pb.RankRequest())


def test_an_answer_comes_back_and_no_number_is_null() -> None:
    answer = pb.ScoreResponse(request_id="r", probabilities=[0.5, float("nan")], unknown_items=["b"])
    assert to_json(answer) == {"request_id": "r", "bundle_version": "", "probabilities": [0.5, None],
                               "unknown_items": ["b"], "known_user": False}
    assert "price" not in to_json(pb.RankedItem())
    ranked = pb.RankResponse(items=[pb.RankedItem(item_id="a", probability=0.25, stage_scores={"rank": 0.25})])
    assert json_format.ParseDict(to_json(ranked), pb.RankResponse()) == ranked


def test_times_are_text_and_numbers_of_64_bits_are_numbers() -> None:
    event = {"event_id": "e", "event_time": "2026-03-01T08:00:00Z", "columns": {"place": "top"}}
    heard = to_message({"events": [event]}, pb.RecordEventsRequest())
    assert heard == to_message([event], pb.RecordEventsRequest())
    assert heard.events[0].event_time.ToMilliseconds() == 1_772_352_000_000
    made = to_json(heard)["events"][0]
    assert (made["event_time"], made["columns"]) == ("2026-03-01T08:00:00Z", {"place": {"text": "top"}})
    status = to_json(pb.CatalogStatus(applied_sequence=2**40, bundle_version="7", recall=float("nan")))
    assert [status[name] for name in ("applied_sequence", "bundle_version", "recall", "room")] == [2**40, "7", None, 0]
    assert to_json(pb.Value(integer=-(2**62))) == {"integer": -(2**62)}


@pytest.mark.parametrize("body", [{"\ud800": 1}, {"context": {"a": {"\ud800": 1}}}, {"user_id": "\ud800"},
                                  {"context": {"\ud800": 1}}])
def test_half_a_surrogate_pair_is_refused(body: object) -> None:
    with pytest.raises(RequestError, match="is no RankRequest"):
        to_message(body, pb.RankRequest())


@pytest.mark.parametrize("body", [
    {"features": {"a": {"bid": 10**309}}}, {"ranges": {"a": {"at_least": 10**309}}},
    {"recent_events": {"times": [-(10**4000)]}}, {"context": {"a": {"number": 10**309}}}])
def test_a_whole_number_that_no_float_holds_is_refused(body: object) -> None:
    with pytest.raises(RequestError, match=r"is no RankRequest: .* 1\.8e\+308; send a smaller one$"):
        to_message(body, pb.RankRequest())


def test_a_long_name_is_not_shown_whole() -> None:
    with pytest.raises(RequestError) as refused:
        to_message({"x" * 500: 1}, pb.RankRequest())
    assert len(refused.value.problem) < 120


def test_what_is_wrong_within_is_told_with_its_path() -> None:
    with pytest.raises(RequestError, match=r"is no RecordEventsRequest: events\.kind: Invalid enum value VIEW"):
        to_message({"events": [{"event_id": "e", "kind": "VIEW"}]}, pb.RecordEventsRequest())
