from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from queue import SimpleQueue

import grpc
import pyarrow.parquet as pq
import pytest

from contracts.config.stages import Serve
from contracts.errors import DataError
from serving.access.caller_name import caller_name
from serving.access.gate import Gate
from serving.access.new_token import entry
from serving.batches.batch_turns import MOST_WAITING
from serving.catalogue.catalog_servicer import CatalogServicer
from serving.catalogue.requests import Asked
from serving.events.event_recorder import MOST_WAITING as MOST_WAITING_FOR_THE_DISK
from serving.events.event_room import EventRoom
from serving.events.event_store import FILE
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from tests.serving.in_process_server import InProcessServer
from tests.serving.recorded_events import recorded_features

SERVE = Serve()


def test_a_room_with_a_folder_reads_users_and_leaves_a_log(tmp_path: Path) -> None:
    room = EventRoom(tmp_path / "fresh", recorded_features(), Serve())
    assert room.users is not None
    assert asyncio.run(room.users.read("u")).recent == ()
    room.close()
    assert (tmp_path / "fresh" / "log").is_dir()


def test_columns_that_a_bundle_before_has_read_are_kept_and_landed_after_a_roll_back(tmp_path: Path) -> None:
    """Those that none has read are refused: they may be misspelt."""
    older = recorded_features()
    newer = older.model_copy(update={"columns": {**older.columns, "mood": "text"}})
    EventRoom(tmp_path, newer, SERVE).close()
    room = EventRoom(tmp_path, older, SERVE)
    told = [pb.Event(event_id=name, kind=pb.Event.IMPRESSION, user_id="u", item_id="i", request_id=name, position=1,
                     bid=0.5, columns={name: pb.Value(text="glad")}) for name in ("mood", "moood")]
    with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[room.add_to]) as server, \
            grpc.insecure_channel(server.target) as channel:
        found = sluice_pb2_grpc.EventsStub(channel).RecordEvents(pb.RecordEventsRequest(events=told), timeout=20)
    room.close()
    assert (found.recorded, [error.field for error in found.errors]) == (1, ["columns[moood]"])
    [path] = (tmp_path / "log" / "shown").glob("*.parquet")
    assert pq.read_table(path).column("mood").to_pylist() == ["glad"]


class Held(CatalogServicer):
    """Reads no batch before it may."""

    def __init__(self) -> None:
        super().__init__(None, SERVE)
        self.may_go = threading.Event()

    def read(self, request: object) -> list[Asked]:
        self.may_go.wait(20)
        return []


def test_callers_of_the_catalogue_do_not_stop_the_recording_of_clicks(tmp_path: Path) -> None:
    """One of them has filled its part of the catalogue's line with batches that are not read yet."""
    room, held = EventRoom(tmp_path / "fresh", recorded_features(), SERVE), Held()
    withdrawal = pb.WithdrawRequest(items=[pb.Change(item_id=f"i{n}") for n in range(10)])
    events = pb.RecordEventsRequest(events=[
        pb.Event(event_id=f"e{n}", kind=pb.Event.CONVERSION, user_id="u", item_id="i") for n in range(10)])
    both = [held.add_to, room.add_to]
    with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=both) as server, \
            grpc.insecure_channel(server.target) as channel:
        catalog = sluice_pb2_grpc.CatalogStub(channel)
        ended = SimpleQueue[grpc.Future]()
        for _ in range(MOST_WAITING // 4 + 1):
            catalog.Withdraw.future(withdrawal, timeout=20).add_done_callback(ended.put)
        assert "of this caller alone" in ended.get(timeout=20).details()
        assert sluice_pb2_grpc.EventsStub(channel).RecordEvents(events, timeout=20).recorded == 10
        held.may_go.set()
        others = {ended.get(timeout=20).code() for _ in range(MOST_WAITING // 4)}
        assert others == {grpc.StatusCode.FAILED_PRECONDITION}
    held.close()
    room.close()


def test_a_caller_who_fills_the_line_for_the_disk_leaves_the_others_theirs(tmp_path: Path) -> None:
    """While another process holds the file. What is refused is not kept, and all else is."""
    access = tmp_path / "access.toml"
    access.write_text("".join(entry(f"{name}-secret", name, ["events"], None) for name in ("greedy", "quiet")))
    many = Serve(max_events=MOST_WAITING_FOR_THE_DISK // 5)
    room = EventRoom(tmp_path / "fresh", recorded_features(), many, who=caller_name(Gate(access)))
    disk = sqlite3.connect(tmp_path / "fresh" / FILE, isolation_level=None)

    def batch(name: str, count: int) -> pb.RecordEventsRequest:
        return pb.RecordEventsRequest(events=[
            pb.Event(event_id=f"{name} {n}", kind=pb.Event.CONVERSION, user_id="u", item_id="i") for n in range(count)])

    with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[room.add_to]) as server, \
            grpc.insecure_channel(server.target) as channel:
        events, ended = sluice_pb2_grpc.EventsStub(channel), SimpleQueue[grpc.Future]()
        disk.execute("BEGIN IMMEDIATE")
        greedy = [events.RecordEvents.future(batch(f"greedy {n}", many.max_events), timeout=20, metadata=by("greedy"))
                  for n in range(3)]  # one at the disk, one behind it, and one too many
        for one in greedy:
            one.add_done_callback(ended.put)
        refused = ended.get(timeout=20)
        quiet = events.RecordEvents.future(batch("quiet", 100), timeout=20, metadata=by("quiet"))
        disk.execute("COMMIT")
        assert quiet.result().recorded == 100
        assert {ended.get(timeout=20).result().recorded for _ in range(2)} == {many.max_events}
    assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"{many.max_events} events wait for the disk of this caller alone" in refused.details()
    assert disk.execute("SELECT count(*) FROM events").fetchone() == (2 * many.max_events + 100,)
    disk.close()
    room.close()


def by(name: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {name}-secret")]


def test_without_a_folder_or_a_log_that_can_be_recorded_there_is_nothing(tmp_path: Path) -> None:
    for room in (EventRoom(None, recorded_features(), Serve()), EventRoom(tmp_path / "fresh", None, Serve())):
        assert room.users is None
        room.close()
    assert not (tmp_path / "fresh").exists()


def test_a_folder_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "fresh").write_text("in the way")
    with pytest.raises(DataError, match="give a folder"):
        EventRoom(tmp_path / "fresh", recorded_features(), Serve())
