"""Over a real channel: what is recorded, what is told of what is not, and what the next request makes of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from contracts.config.stages import Serve
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_room import EventRoom
from serving.events.event_servicer import NO_FEATURES, NO_STORE
from serving.events.event_store import FILE
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.client import RankingClient
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from tests.serving.in_process_server import InProcessServer
from tests.serving.recorded_events import recorded_features

SERVE = Serve(default_limit=3, max_limit=10, deadline_ms=5000, max_events=10)
SECONDS = 30.0


def impression(request: str, user: str, item: str) -> pb.Event:
    return pb.Event(event_id=f"shown {request}", kind=pb.Event.IMPRESSION, user_id=user, item_id=item,
                    request_id=request, position=1, bid=1.0)


def click(request: str, user: str, item: str) -> pb.Event:
    return pb.Event(event_id=f"click {request}", kind=pb.Event.CLICK, user_id=user, item_id=item, request_id=request)


class Host:
    """Two workers' rooms over one folder; events are told to the first, requests asked of the second."""

    def __init__(self, folder: Path, bundle: LoadedBundle) -> None:
        self.refused = list[tuple[str, int]]()
        self.rooms = [EventRoom(folder, recorded_features(), SERVE, refuses=lambda *told: self.refused.append(told))
                      for _ in range(2)]
        self.servicer = RankingServicer(Funnel(bundle), bundle.manifest, SERVE, users=self.rooms[1].users)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fresh")


@pytest.fixture(scope="module")
def host(folder: Path, loaded: LoadedBundle) -> Iterator[Host]:
    host = Host(folder, loaded)
    yield host
    host.servicer.close()
    for room in host.rooms:
        room.close()


@pytest.fixture(scope="module")
def server(host: Host) -> Iterator[InProcessServer]:
    with InProcessServer(host.servicer, also=[host.rooms[0].add_to]) as server:
        yield server


@pytest.fixture(scope="module")
def events(server: InProcessServer) -> Iterator[sluice_pb2_grpc.EventsStub]:
    with grpc.insecure_channel(server.target) as channel:
        yield sluice_pb2_grpc.EventsStub(channel)


@pytest.fixture(scope="module")
def client(server: InProcessServer) -> Iterator[RankingClient]:
    with RankingClient(server.target) as client:
        yield client


def record(events: sluice_pb2_grpc.EventsStub, *told: pb.Event) -> pb.RecordEventsResponse:
    return events.RecordEvents(pb.RecordEventsRequest(events=told), timeout=SECONDS)


def probabilities(answer: pb.RankResponse) -> dict[str, float]:
    return {item.item_id: item.probability for item in answer.items}


def test_a_click_is_in_the_next_request_of_another_worker_as_if_the_caller_had_told_it(
    events: sluice_pb2_grpc.EventsStub, client: RankingClient
) -> None:
    items = ["i03", "i05", "i08"]
    before = client.rank("newcomer", candidates=items, seconds=SECONDS)
    found = record(events, impression("a", "newcomer", "i01"), click("a", "newcomer", "i01"))
    assert (found.recorded, found.repeats, len(found.errors)) == (2, 0, 0)
    after = client.rank("newcomer", candidates=items, seconds=SECONDS)
    told = client.rank("newcomer", candidates=items, recent_items=["i01"], seconds=SECONDS)
    assert probabilities(after) == probabilities(told) != probabilities(before)
    stage = next(stage for stage in after.stages if stage.name == "user")
    assert stage.status == pb.StageReport.COMPLETE
    assert 0 <= stage.age_seconds < SECONDS
    assert not next(stage for stage in before.stages if stage.name == "user").HasField("age_seconds")


def test_each_event_has_an_error_of_its_own_and_repeats_are_counted(
    events: sluice_pb2_grpc.EventsStub, host: Host
) -> None:
    bad = impression("b", "u01", "i01")
    bad.ClearField("bid")
    found = record(events, bad, impression("c", "u01", "i01"), impression("c", "u01", "i01"))
    assert (found.recorded, found.repeats) == (1, 1)
    assert [(error.index, error.event_id, error.field) for error in found.errors] == [(0, "shown b", "bid")]
    assert host.refused == [("call", 1)]


def test_what_was_acknowledged_is_on_the_disk(events: sluice_pb2_grpc.EventsStub, folder: Path) -> None:
    record(events, impression("d", "u01", "i01"))
    with sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True) as other:
        assert other.execute("SELECT count(*) FROM events WHERE id = 'shown d'").fetchone() == (1,)
    other.close()


def test_too_many_events_are_refused(events: sluice_pb2_grpc.EventsStub) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        record(events, *[impression(str(n), "u01", "i01") for n in range(11)])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "more than 10 entries, as many as serve.max_events allows" in caught.value.details()


@pytest.mark.parametrize(("kept", "why"), [(False, NO_STORE), (True, NO_FEATURES)])
def test_a_server_that_keeps_no_events_says_why(loaded: LoadedBundle, tmp_path: Path, kept: bool, why: str) -> None:
    room = EventRoom(tmp_path if kept else None, None, SERVE)
    servicer = RankingServicer(Funnel(loaded), replace(loaded).manifest, SERVE, users=room.users)
    with InProcessServer(servicer, also=[room.add_to]) as server, grpc.insecure_channel(server.target) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            record(sluice_pb2_grpc.EventsStub(channel), impression("a", "u01", "i01"))
        assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.FAILED_PRECONDITION, why)
        with RankingClient(server.target) as client:
            assert client.rank("u01", seconds=SECONDS).stages[0].name == "retrieve"
    servicer.close()
    room.close()
