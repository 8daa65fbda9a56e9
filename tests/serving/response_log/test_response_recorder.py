"""What the log says of a call is what its caller can have seen of it."""

from __future__ import annotations

import time
import tracemalloc
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from serving.proto import sluice_pb2 as pb
from serving.replay import response_history
from serving.request.query import PageAnswer, RankAnswer, RankedItem, Sold, StageReport
from serving.request.wire_values import to_value
from serving.response_log.ledger import Served
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_recorder import (
    HeldAnswer,
    ResponseRecorder,
    at_the_end,
    context_as_text,
    lists_as_text,
)
from tests.serving.logged_responses import NOON

MANIFEST = Manifest(schema_version=SCHEMA_VERSION, name="shop", content_hash="0123456789abcdef", files={}, created=NOON)
ANSWER = RankAnswer(
    items=[RankedItem(item="a", probability=0.1, score=200.0, sold=Sold(2.0, 1.5, "b", 150.0), channel="popularity",
                      stage_scores={}, reasons=[]),
           RankedItem(item="c", probability=0.2, score=0.2, sold=None, channel="explicit", stage_scores={},
                      reasons=[])],
    stages=[StageReport("rank", 9, 2, 40, cause="late")], bundle_version="shop-1", unknown_candidates=[],
    known_user=True)


class Remaining:
    """Seconds that a call has left."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def time_remaining(self) -> float | None:
        return self.seconds


@pytest.mark.parametrize(("status", "left", "said"), [
    ("OK", 0.5, "OK"), ("OK", None, "OK"), ("OK", 0.0, "DEADLINE_EXCEEDED"),
    ("CANCELLED", 0.5, "CANCELLED"), ("CANCELLED", None, "CANCELLED"), ("CANCELLED", 0.002, "DEADLINE_EXCEEDED"),
    ("CANCELLED", 0.0, "DEADLINE_EXCEEDED"), ("RESOURCE_EXHAUSTED", 0.002, "RESOURCE_EXHAUSTED"),
    ("RESOURCE_EXHAUSTED", 0.0, "DEADLINE_EXCEEDED"), ("INVALID_ARGUMENT", 0.0, "INVALID_ARGUMENT")])
def test_a_call_that_met_its_deadline_is_the_servers_failure(status: str, left: float | None, said: str) -> None:
    assert at_the_end(status, Remaining(left), 0.003) == said


def test_the_time_of_an_answer_is_before_its_sending_ends(tmp_path: Path) -> None:
    """A caller may click before the server learns that it has the answer."""
    log = ResponseLog(tmp_path)
    call = ResponseRecorder(log, MANIFEST).begin(pb.RankRequest(user_id="u1"), "r1", 0.003, Remaining(9.0))
    call.answered(ANSWER)
    clicked = datetime.now(UTC)
    time.sleep(0.01)
    call.ended(Remaining(9.0))
    log.close()
    [row] = response_history.rows(tmp_path).to_pylist()
    assert row["time"] <= clicked


@pytest.fixture
def log(tmp_path: Path) -> ResponseLog:
    return ResponseLog(tmp_path)


def rows(log: ResponseLog, folder: Path) -> list[dict]:
    log.close()
    return sorted(response_history.rows(folder).to_pylist(), key=lambda row: row["request_id"])


def test_an_answer_is_logged_with_prices_and_what_set_them(log: ResponseLog, tmp_path: Path) -> None:
    request = pb.RankRequest(user_id="u", context={"device": pb.Value(text="phone")})
    call = ResponseRecorder(log, MANIFEST).begin(request, "r", 0.003, Remaining(1.0))
    call.answered(ANSWER)
    call.ended(Remaining(0.9))
    [row] = rows(log, tmp_path)
    assert (row["status"], row["user"], row["context"], row["calls"]) == ("OK", "u", [("device", "phone")], 1)
    assert (row["items"], row["channels"]) == (["a", "c"], ["popularity", "explicit"])
    assert (row["prices"], row["bids"], row["runner_ups"], row["to_beat"]) == (
        [1.5, None], [2.0, None], ["b", None], [150.0, None])
    assert (row["stages"], row["stage_statuses"], row["stage_causes"], row["stage_microseconds"]) == (
        ["rank"], ["complete"], ["late"], [40])


def test_an_answer_that_came_too_late_shows_nothing(log: ResponseLog, tmp_path: Path) -> None:
    call = ResponseRecorder(log, MANIFEST).begin(pb.RankRequest(user_id="u"), "r", 0.003, Remaining(1.0))
    call.answered(ANSWER)
    call.ended(Remaining(0.0))
    [row] = rows(log, tmp_path)
    assert (row["status"], row["items"], row["prices"]) == ("DEADLINE_EXCEEDED", [], [])


def test_the_slates_of_a_request_are_one_call(log: ResponseLog, tmp_path: Path) -> None:
    request = pb.RankRequest(user_id="u", context={"device": pb.Value(text="phone")}, placements=[
        pb.Placement(name="top"), pb.Placement(name="side", context={"device": pb.Value(text="desk")})])
    call = ResponseRecorder(log, MANIFEST).begin(request, "r", 0.003, Remaining(None))
    call.answered(PageAnswer(("top", "side"), [ANSWER, ANSWER]))
    call.ended(Remaining(None))
    side, top = rows(log, tmp_path)
    assert (side["request_id"], side["calls"], side["context"]) == ("r/side", 0, [("device", "desk")])
    assert (top["request_id"], top["calls"], top["context"]) == ("r/top", 1, [("device", "phone")])


def test_what_was_not_read_is_counted(log: ResponseLog, tmp_path: Path) -> None:
    recorder = ResponseRecorder(log, MANIFEST)
    for left in (0.5, 0.4, 0.0):
        recorder.unread("RESOURCE_EXHAUSTED", 0.003, Remaining(left))
    recorder.refused(40)
    log.close()
    found = {row["status"]: row["calls"] for row in response_history.rows(tmp_path).to_pylist()}
    assert found == {"RESOURCE_EXHAUSTED": 42, "DEADLINE_EXCEEDED": 1}


def test_what_is_held_counts_for_no_less_than_it_takes() -> None:
    """Thousand answers of ten items, each made of values of its own."""
    tracemalloc.start()
    try:
        held = [held_answer(number) for number in range(1000)]
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < sum(one.size for one in held)


def held_answer(number: int) -> HeldAnswer:
    def item(place: int) -> RankedItem:
        chance = 1.0 / (number + place + 2)
        return RankedItem(
            item=f"item-{number}-{place}", probability=chance, score=2000 * chance,
            sold=Sold(2.0 + chance, 1.5 + chance, f"other-{number}-{place}", 1500 * chance), channel="popularity",
            stage_scores={name: chance + n for n, name in enumerate(("retrieve", "prerank", "rank"))}, reasons=[])

    stages = [StageReport(name, 1000 + number, 200 + number, 4000 + number)
              for name in ("retrieve", "prerank", "rank", "rerank", "explain")]
    return HeldAnswer(
        request_id=f"request-{number}", time=datetime.now(UTC), user=f"user-{number}",
        context={"device": f"phone-{number}", "hour": str(1000 + number)}, context_lists={"moods": [f"calm-{number}"]},
        answer=RankAnswer([item(place) for place in range(10)], stages, "shop-1", [], True),
        bundle=Served("shop-1", NOON), status="OK", microseconds=4000 + number, calls=1)


def test_without_a_log_nothing_is_kept() -> None:
    recorder = ResponseRecorder(None, MANIFEST)
    call = recorder.begin(pb.RankRequest(user_id="u"), "r", 0.003, Remaining(1.0))
    call.answered(ANSWER)
    call.ended(Remaining(0.9))
    recorder.unread("CANCELLED", 0.003, Remaining(None))


def test_context_is_text_that_casts_back() -> None:
    request = pb.RankRequest(context={
        "device": pb.Value(text="phone"), "hour": pb.Value(integer=7), "price": pb.Value(number=0.1),
        "new": pb.Value(flag=True), "empty": pb.Value(), "moods": to_value(("calm", "late")),
    })
    assert context_as_text(request.context) == {
        "device": "phone", "hour": "7", "price": "0.1", "new": "true", "moods": '["calm", "late"]'}
    assert lists_as_text(request.context) == {"moods": ["calm", "late"]}
