from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.config.stages import Serve
from serving.events.event import Event, Kind
from serving.events.event_checks import check_events
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds
from tests.serving.recorded_events import SECOND, START, recorded_features

FEATURES, SERVE = recorded_features(), Serve(max_events=3, max_text=20)
Change = Callable[[pb.Event], object]


def told(kind: pb.Event.Kind = pb.Event.IMPRESSION) -> pb.Event:
    event = pb.Event(event_id="e", kind=kind, user_id="u", item_id="i", request_id="r", position=2, bid=0.5,
                     columns={"place": pb.Value(text="top"), "price": pb.Value(integer=3)})
    event.event_time.FromMicroseconds(START)
    return event


def checked(*events: pb.Event) -> tuple[list[Event], list[pb.EventError]]:
    found = check_events(pb.RecordEventsRequest(events=events), FEATURES, SERVE, START)
    return found.events, found.errors


def test_an_impression_has_the_columns_of_the_log() -> None:
    events, errors = checked(told())
    assert errors == []
    assert events == [Event(id="e", kind=Kind.IMPRESSION, at=START, user="u", item="i", columns={
        "uid": "u", "iid": "i", "request": "r", "slot": 2, "bid": 0.5, "place": "top", "price": 3.0})]


def test_without_a_time_it_is_the_present() -> None:
    event = told(pb.Event.CLICK)
    event.ClearField("event_time")
    assert checked(event)[0][0].at is None


def set_time(micros: int) -> Change:
    return lambda event: event.event_time.FromMicroseconds(micros)


@pytest.mark.parametrize(("change", "field", "problem"), [
    (lambda e: e.ClearField("kind"), "kind", "set one"),
    (lambda e: e.ClearField("event_id"), "event_id", "is empty"),
    (lambda e: e.ClearField("user_id"), "user_id", "is empty"),
    (lambda e: setattr(e, "item_id", "a\0"), "item_id", "NUL"),
    (lambda e: setattr(e, "request_id", "x" * 21), "request_id", "at most 20"),
    (lambda e: setattr(e, "position", 0), "position", "missing or 0"),
    (lambda e: setattr(e, "position", 2**31), "position", "above 2147483647"),
    (lambda e: setattr(e, "bid", 1e39), "bid", "above 1e"),
    (lambda e: setattr(e.event_time, "nanos", -1), "event_time", "is no time"),
    (lambda e: e.columns["place"].CopyFrom(pb.Value(list=pb.ValueList(values=[pb.Value(text="a")]))), "columns[place]",
     "of the type text"),
    (lambda e: e.ClearField("bid"), "bid", "missing"), (lambda e: setattr(e, "bid", -1), "bid", "negative"),
    (lambda e: setattr(e, "bid", float("nan")), "bid", "no number"),
    (set_time(START + 2 * SECOND), "event_time", r"\+2\.000 s from the server's clock"),
    (set_time(-1), "event_time", "1970"),
    (lambda e: e.columns["plase"].CopyFrom(pb.Value(text="a")), "columns[plase]", "did you mean 'place'"),
    (lambda e: e.columns["hour"].CopyFrom(pb.Value(integer=1)), "columns[hour]", "no column of the log"),
    (lambda e: e.columns["place"].CopyFrom(pb.Value(integer=1)), "columns[place]", "of the type text"),
    (lambda e: e.columns["age"].CopyFrom(pb.Value(flag=True)), "columns[age]", "of the type integer"),
    (lambda e: e.columns["price"].CopyFrom(pb.Value(number=float("nan"))), "columns[price]", "nan, which is no number"),
    (lambda e: e.columns["price"].CopyFrom(pb.Value(number=float("-inf"))), "columns[price]", "leave the column out"),
    (lambda e: e.columns["place"].CopyFrom(pb.Value()), "columns[place]", "no value"),
    (lambda e: e.columns["uid"].CopyFrom(pb.Value(text="a")), "columns[uid]", "leave it out here"),
    (lambda e: e.columns["known"].CopyFrom(pb.Value(integer=1)), "columns[known]", "leave it out here"),
])
def test_what_the_pipelines_would_set_aside_is_refused_and_the_others_are_taken(
    change: Change, field: str, problem: str
) -> None:
    bad = told()
    change(bad)
    events, errors = checked(told(), bad, told(pb.Event.CONVERSION))
    assert len(events) == 2
    assert [(error.index, error.field) for error in errors] == [(1, field)]
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(errors[0].problem)


def test_a_click_says_what_was_clicked() -> None:
    bad = told(pb.Event.CLICK)
    bad.ClearField("request_id")
    assert checked(bad)[1][0].field == "request_id"
    assert "label.clicks.on" in checked(bad)[1][0].problem
    good = told(pb.Event.CLICK)
    good.ClearField("position")
    good.ClearField("bid")
    assert checked(good)[0][0].columns["request"] == "r"


def test_too_many_are_refused_together() -> None:
    with pytest.raises(OutOfBounds, match="at most 3"):
        checked(*[told()] * 4)


@pytest.mark.parametrize(("values", "taken"), [
    ([pb.Value(text="a"), pb.Value(text="b")], True), ([pb.Value(text="a"), pb.Value(integer=1)], False),
])
def test_lists_hold_texts(values: list[pb.Value], taken: bool) -> None:
    """A list of anything else could not be landed, and would hold up all that waits behind it."""
    columns = {**FEATURES.columns, "place": "list"}
    event = told()
    event.columns["place"].CopyFrom(pb.Value(list=pb.ValueList(values=values)))
    features = FEATURES.model_copy(update={"columns": columns})
    found = check_events(pb.RecordEventsRequest(events=[event]), features, SERVE, START)
    assert (len(found.events), len(found.errors)) == ((1, 0) if taken else (0, 1))
