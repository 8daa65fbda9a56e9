from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.config.stages import Serve
from serving.events.event_room import EventRoom
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.connection import RankingFailed
from serving.server.delivery import Delivery
from serving.server.events_client import EventsClient, ItemEvent
from tests.serving.in_process_server import InProcessServer
from tests.serving.recorded_events import recorded_features

CLICK = ItemEvent(id="e", kind="click", user="u", item="i", request="r")


def test_everything_given_is_sent() -> None:
    told = ItemEvent(id="e", kind="impression", user="u", item="i", request="r", position=0, bid=0.5,
                     time=datetime(2026, 1, 2, tzinfo=UTC), columns={"place": "top"}).message()
    assert (told.event_id, told.kind, told.user_id, told.item_id, told.request_id) == (
        "e", pb.Event.IMPRESSION, "u", "i", "r")
    assert (told.position, told.bid, told.columns["place"].text) == (0, 0.5, "top")
    assert told.event_time.ToMicroseconds() == 1_767_312_000_000_000
    assert not any(CLICK.message().HasField(name) for name in ("position", "bid", "event_time"))


def test_events_are_kept_once_and_what_is_wrong_is_told(tmp_path: Path) -> None:
    room = EventRoom(tmp_path, recorded_features(), Serve(default_limit=3, max_limit=10))
    bad = ItemEvent(id="", kind="click", user="u", item="i", request="r")
    with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[room.add_to]) as server, \
            EventsClient(server.target, delivery=Delivery(attempts=3)) as client:
        told = client.record([CLICK, bad], seconds=30)
        assert (told.recorded, [(one.index, one.field) for one in told.errors]) == (1, [(1, "event_id")])
        assert client.record([CLICK], seconds=30).repeats == 1
    room.close()


def test_a_server_that_is_not_there_is_a_failure_with_its_status() -> None:
    with EventsClient("127.0.0.1:1") as client, pytest.raises(RankingFailed) as failed:
        client.record([CLICK], seconds=5)
    assert failed.value.code == "UNAVAILABLE"
